"""The format of queue names, and the queues that every tenant has (R-APPR-5)."""

import re
from typing import Final

QUEUE_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
LONGEST_DESCRIPTION: Final = 300
STANDING_QUEUES: Final = {
    "operations": "Calls of tools that name no other queue.",
    "messages": "Messages that leave the house.",
    "finance": "Payments and whatever else moves money.",
    "support": "Cases of customers.",
    "budget": "Runs that ask for more budget.",
    "reconciliation": "Calls of which nobody knows whether they took effect.",
    "submitter": "Questions to whoever submitted the task.",
}
"""By name what each is for. A tenant has them from its first day, for what ships names them."""
ALWAYS_OPEN: Final = frozenset({"budget", "reconciliation", "submitter"})
"""The queues that runs themselves ask in, whatever their workflow, tools and boundary name."""


def unknown_queue_sentence(name: str) -> str:
    """Return the message that there is no such open queue and how an administrator can add or open it."""
    return f"There is no open queue {name}; an administrator adds or opens it on the page Queues."

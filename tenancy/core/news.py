"""What a tenant's endpoints can be told of, and what a message about it looks like (R-API-6).

One kind a line, with its sentence: the page, the API and the document take their choices from here.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import orjson

BUDGET_ALERT: Final = "budget.alert"
RUN_ENDED: Final = "run.ended"
APPROVAL_ASKED: Final = "approval.asked"
TEST: Final = "webhook.test"

KINDS: Final[Mapping[str, str]] = {
    BUDGET_ALERT: "A day's or month's spending reached 50, 80, 95 or 100 % of its ceiling",
    RUN_ENDED: "A run came to its end",
    APPROVAL_ASKED: "People are asked to decide or to answer",
}
"""What an endpoint may ask for. A test goes to the one endpoint it tries, whatever that asked for."""


def headline(kind: str, data: Mapping[str, Any]) -> str:
    """What a message says, in a few words."""
    if kind == BUDGET_ALERT:
        return f"{data.get('threshold_percent')} % of the ceiling for a {data.get('window')}"
    if kind == RUN_ENDED:
        return f"A run of {data.get('workflow')} ended: {data.get('terminal_code')}"
    if kind == APPROVAL_ASKED:
        return f"People are asked about {data.get('tool') or 'a run'} in {data.get('workflow')}"
    return "A test" if kind == TEST else KINDS.get(kind, kind)


def message(kind: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """The body: {type, timestamp, data}, as Standard Webhooks has it. `data` holds what JSON has; money and
    ids as text."""
    body = {"type": kind, "timestamp": at.isoformat(), "data": dict(data)}
    return orjson.dumps(body)

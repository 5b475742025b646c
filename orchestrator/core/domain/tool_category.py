"""Categories of tools, each with the default risk class of its changes (R-TOOL-2).

A category applies unless an admin states otherwise for a remote tool. A tool that only reads is read_only
in every category. A class below the default is a weaker guard, which a second person must approve.
"""

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.tool_spec import Reversibility, Risk


class Category(FrozenModel):
    """A category of tools.

    `undoable` is the class of a change that can be undone, `final` that of one that cannot; None: its tools
    change nothing. `queue` is where a person decides.
    """

    title: str
    undoable: Risk | None
    final: Risk | None
    queue: str = "operations"

    def changes(self, reversibility: Reversibility) -> Risk | None:
        """Return the class of a change, by its reversibility."""
        return self.final if reversibility is Reversibility.IRREVERSIBLE else self.undoable


NONE = "remote"
"""The category of a tool of which nobody has said one: it has no default."""
CATEGORIES: dict[str, Category] = {
    "lookup": Category(title="look-up that only reads", undoable=None, final=None),
    "retrieval": Category(title="retrieval of documents and evidence", undoable=None, final=None),
    "live_api": Category(title="live interface of a service", undoable=Risk.NETWORK, final=Risk.NETWORK),
    "calculator": Category(title="calculator", undoable=None, final=None),
    "sandbox": Category(title="code in a sandbox", undoable=Risk.LOCAL_WRITE, final=Risk.LOCAL_WRITE),
    "files": Category(title="files of a workspace", undoable=Risk.LOCAL_WRITE, final=Risk.DESTRUCTIVE),
    "database": Category(title="database", undoable=Risk.DESTRUCTIVE, final=Risk.DESTRUCTIVE),
    "email": Category(
        title="e-mail and calendar", undoable=Risk.LOCAL_WRITE, final=Risk.NETWORK, queue="messages"
    ),
    "procurement": Category(title="procurement", undoable=Risk.DELEGATED, final=Risk.DELEGATED),
    "payment": Category(
        title="payment", undoable=Risk.DELEGATED, final=Risk.DESTRUCTIVE, queue="finance"
    ),
    "infrastructure": Category(
        title="infrastructure", undoable=Risk.DELEGATED, final=Risk.DESTRUCTIVE
    ),
    "review_queue": Category(
        title="review queue", undoable=Risk.LOCAL_WRITE, final=Risk.LOCAL_WRITE
    ),
}  # fmt: skip
"""The reference's eligibility matrix, a row or two each."""


def default_risk(category: str, reversibility: Reversibility) -> Risk | None:
    """Return the class of a tool without a stated class; None if its category has none either."""
    known = CATEGORIES.get(category)
    if known is None:
        return None
    return Risk.READ_ONLY if reversibility is Reversibility.PURE else known.changes(reversibility)


def remote_risk(category: str, reversibility: Reversibility) -> Risk | None:
    """Return `default_risk` for a remote tool: at least `network` for a tool that changes anything."""
    found = default_risk(category, reversibility)
    return found if found in (None, Risk.READ_ONLY) else max(found, Risk.NETWORK, key=lambda risk: risk.rank)


def default_queue(category: str) -> str:
    """Return the queue in which a person decides on calls of the category by default."""
    known = CATEGORIES.get(category)
    return "operations" if known is None else known.queue

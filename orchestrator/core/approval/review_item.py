"""Items that a run submits to people for review, and their status (R-TOOL-19).

An item waits until a person takes it; that person may release it again; one answer closes it. An answer is
a finding: it permits no call, so nothing here is an approval.
"""

from typing import Final, Literal

from orchestrator.core.common.frozen_model import FrozenModel

CATEGORY: Final = "review_queue"
MOST_EVIDENCE: Final = 20
LONGEST_NOTE: Final = 2_000
QUEUE: Final = r"^[a-z][a-z0-9_-]{0,63}$"

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")
Finding = Literal["confirmed", "objected", "undecided"]
FINDINGS: tuple[Finding, ...] = ("confirmed", "objected", "undecided")
Kind = Literal["taken", "released", "answered"]
State = Literal["waiting", "taken", "answered"]
STATES: tuple[State, ...] = ("waiting", "taken", "answered")


class NewestEntry(FrozenModel):
    """The newest entry of an item: the action and the principal id of its author; none yet means waiting."""

    kind: Kind | None = None
    by: str = ""


def state_of(last: NewestEntry) -> State:
    """Return the status of an item after its newest entry."""
    if last.kind == "answered":
        return "answered"
    return "taken" if last.kind == "taken" else "waiting"


def explain_review_refusal(last: NewestEntry, kind: Kind, by: str, *, may_release: bool = False) -> str:
    """Return why a person may not perform this action on an item now; "" if the action is allowed.

    An item that another person has taken is theirs until they release it: two people who answer one item
    would both believe that their own answer counted. `may_release`: the caller may release it in the other
    person's place.
    """
    state = state_of(last)
    if state == "answered":
        return "it is answered"
    if state == "taken" and last.by != by:
        if kind == "released" and may_release:
            return ""
        return "somebody else has taken it"
    if state == "taken" and kind == "taken":
        return "it is yours already"
    return "" if kind != "released" or state == "taken" else "nobody has taken it"

"""What a run may put before people for a look, and how such an item stands (R-TOOL-19).

An item waits, somebody takes it or gives it back, and one answer ends it. An answer is a finding: it allows
no call, so nothing here is an approval.
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


class Last(FrozenModel):
    """The newest word on an item: what was done, and by whom (a principal's id). None yet: it waits."""

    kind: Kind | None = None
    by: str = ""


def state_of(last: Last) -> State:
    """How an item stands after its newest word."""
    if last.kind == "answered":
        return "answered"
    return "taken" if last.kind == "taken" else "waiting"


def explain_review_refusal(last: Last, kind: Kind, by: str, *, may_release: bool = False) -> str:
    """Why somebody may not do that with an item now; empty where they may.

    What is another's is theirs until they give it back: two people who answer one item would both be sure
    that theirs counted. `may_release`: who asks may give it back in their place.
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

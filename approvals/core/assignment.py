"""Rules for actions on a request other than deciding it: assignee, snooze, comments.

None of these actions decides a request, extends its time, or prevents an authorized person from deciding
(R-APPR-9).
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class AssignmentAction(StrEnum):
    """An action on a request. Claim and assign set an assignee, release clears it."""

    CLAIM = "claim"
    ASSIGN = "assign"
    RELEASE = "release"
    SNOOZE = "snooze"
    WAKE = "wake"
    COMMENT = "comment"
    REVEAL = "reveal"


# REVEAL has an action of its own (actions/reveal.py).
WISHES = tuple(kind for kind in AssignmentAction if kind is not AssignmentAction.REVEAL)
HOLDING = (AssignmentAction.CLAIM, AssignmentAction.ASSIGN, AssignmentAction.RELEASE)
RESTING = (AssignmentAction.SNOOZE, AssignmentAction.WAKE)


class AssignmentRecord(BaseModel):
    """One recorded action on a request. `to` is the new assignee, `until` the end of a snooze."""

    model_config = ConfigDict(frozen=True)
    kind: AssignmentAction
    owner: str
    to: str = ""
    until: datetime | None = None


def derive_assignee(handled: Iterable[AssignmentRecord]) -> str:
    """Return the assignee, by principal, after these actions in order; "" if there is none."""
    found = ""
    for one in handled:
        if one.kind in HOLDING:
            found = one.to
    return found


def asleep_until(handled: Iterable[AssignmentRecord], owner: str, now: datetime) -> datetime | None:
    """Return the time until which this person snoozed the request; None if it is not snoozed."""
    found: datetime | None = None
    for one in handled:
        if one.kind in RESTING and one.owner == owner:
            found = one.until
    return found if found is not None and found > now else None


def snooze_fault(until: datetime, now: datetime, expires_at: datetime) -> str:
    """Return why the request may not be snoozed until then; "" if it may.

    A request that expires before then cannot be snoozed.
    """
    if until <= now:
        return "this moment has passed"
    return "the request expires before that" if until >= expires_at else ""

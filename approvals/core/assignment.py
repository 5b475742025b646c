"""What people do with a request besides deciding it: whose it is, who put it aside, what was remarked.

Nothing of it decides, extends a request's time, or keeps anybody who may decide from deciding (R-APPR-9).
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Handle(StrEnum):
    """What can be done with it. Claim and assign make it somebody's, release nobody's."""

    CLAIM = "claim"
    ASSIGN = "assign"
    RELEASE = "release"
    SNOOZE = "snooze"
    WAKE = "wake"
    COMMENT = "comment"
    REVEAL = "reveal"


# What is asked for by its own verb, not by a wish (actions/revealing.py).
WISHES = tuple(kind for kind in Handle if kind is not Handle.REVEAL)
HOLDING = (Handle.CLAIM, Handle.ASSIGN, Handle.RELEASE)
RESTING = (Handle.SNOOZE, Handle.WAKE)


class Handled(BaseModel):
    """One thing that was done with a request. `to` is whose it became, `until` when it comes back."""

    model_config = ConfigDict(frozen=True)
    kind: Handle
    owner: str
    to: str = ""
    until: datetime | None = None


def derive_assignee(handled: Iterable[Handled]) -> str:
    """Whose the request is, by principal, after all that was done in this order; "" nobody's."""
    found = ""
    for one in handled:
        if one.kind in HOLDING:
            found = one.to
    return found


def asleep_until(handled: Iterable[Handled], owner: str, now: datetime) -> datetime | None:
    """Until when this person put it aside; None where it stands before them."""
    found: datetime | None = None
    for one in handled:
        if one.kind in RESTING and one.owner == owner:
            found = one.until
    return found if found is not None and found > now else None


def snooze_fault(until: datetime, now: datetime, expires_at: datetime) -> str:
    """Why nobody may put it aside until then; "" where they may. What expires meanwhile is not put aside."""
    if until <= now:
        return "this moment has passed"
    return "the request expires before that" if until >= expires_at else ""

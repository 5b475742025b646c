"""Deferral of an approval for some seconds, so that its author can undo it (docs/console.md).

Only low-risk approvals by a single person are deferred: of a call that only reads, or that makes a local
write, which can be undone here.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from approvals.core.lifecycle import AGREEING, DecisionKind

UNDOABLE: Final = ("read_only", "local_write")
LONGEST: Final = 10
"""Seconds that a tenant may give at most."""
MARGIN: Final = timedelta(minutes=1)


class Fate(StrEnum):
    """The outcome of a deferred approval; `stands` is the only value that is not final."""

    STANDS = "stands"
    TAKEN = "taken"
    UNDONE = "undone"
    LAPSED = "lapsed"


def keeps_back(*, seconds: int, kind: str, word: DecisionKind, risk: str, quorum: int) -> bool:
    """Return whether a decision can be undone for some `seconds` before it takes effect.

    A rejection is never deferred, since it permits nothing that may have to be undone. An approval by
    several people is never deferred either, since each would have to wait for the others' seconds too.
    """
    return seconds > 0 and kind == "action" and word in AGREEING and risk in UNDOABLE and quorum <= 1


def effective_at(at: datetime, seconds: int, expires_at: datetime) -> datetime | None:
    """Return the time at which an approval made `at` takes effect; None for at once.

    An approval takes effect at once if the request is about to expire, so that the delay cannot make it
    fail.
    """
    then = at + timedelta(seconds=seconds)
    return then if then + MARGIN <= expires_at else None

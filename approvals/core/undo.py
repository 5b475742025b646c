"""A yes that is kept back for some seconds, so that whoever said it can take it back (docs/console.md).

Only what is least is kept back: a call that reads or writes what is undone here, by one person's word.
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
    """What became of a yes that was kept back; `stands` is the only one that is left."""

    STANDS = "stands"
    TAKEN = "taken"
    UNDONE = "undone"
    LAPSED = "lapsed"


def keeps_back(*, seconds: int, kind: str, word: DecisionKind, risk: str, quorum: int) -> bool:
    """Whether a word to a request can be taken back for some `seconds` before it takes effect.

    Never a no: what is not allowed needs no second thought. Never where several people must agree: each would
    wait for the others' seconds, too.
    """
    return seconds > 0 and kind == "action" and word in AGREEING and risk in UNDOABLE and quorum <= 1


def effective_at(at: datetime, seconds: int, expires_at: datetime) -> datetime | None:
    """When a yes that is said `at` takes effect; None for at once, where the request is about to expire: a
    yes must not be lost to its own delay."""
    then = at + timedelta(seconds=seconds)
    return then if then + MARGIN <= expires_at else None

"""When a tenant's administrators are told of a day or month, and when it is at its ceiling (R-BUDGET-10)."""

from dataclasses import replace
from decimal import Decimal
from math import ceil
from typing import Final

from budgets.core.posting import LineState
from budgets.core.vector import ZERO

THRESHOLDS: Final = (50, 80, 95, 100)
FULL: Final = 100
# The last twentieth: what is left there may be too little for a run, and then nothing more is admitted.
LAST_PART: Final = 20
SOON: Final = 30


def reached(line: LineState) -> tuple[int, ...]:
    """The thresholds, in percent of the limit, that what is spent and held has come to. A limit of zero
    forbids spending and is never reached (R-BUDGET-16)."""
    if not line.limit:
        return ()
    taken = (line.used + line.reserved) * 100
    return tuple(threshold for threshold in THRESHOLDS if taken >= line.limit * threshold)


def newly_reached(before: LineState, after: LineState) -> tuple[int, ...]:
    """The thresholds that a change of the line, or of its limit, came to."""
    known = reached(before)
    return tuple(threshold for threshold in reached(after) if threshold not in known)


def at_ceiling(line: LineState, wanted: Decimal | None) -> bool:
    """Whether nothing more is admitted: nothing is left, or less than a twentieth that was not enough for a
    run. `wanted` is the least that was refused in this window (None: nothing was)."""
    if not line.limit or line.left is None:
        return False
    if not line.left:
        return True
    return wanted is not None and line.left < wanted and line.left * LAST_PART < line.limit


def bears_in(line: LineState, wanted: Decimal, seconds_left: float) -> int:
    """In how many seconds a line that has less left than `wanted` is worth another try: `opens_in`."""
    spent_alone = replace(line, reserved=ZERO).left
    seconds = max(1, ceil(seconds_left))
    return seconds if spent_alone is None or spent_alone < wanted else min(seconds, SOON)


def opens_in(line: LineState, wanted: Decimal | None, seconds_left: float) -> int:
    """In how many seconds a line at its ceiling is worth another try (R-BUDGET-10): when its window turns, or
    soon, where it is full only for what runs under way hold: what they do not spend comes back."""
    spent_alone = replace(line, reserved=ZERO)
    seconds = max(1, ceil(seconds_left))
    return seconds if at_ceiling(spent_alone, wanted) else min(seconds, SOON)

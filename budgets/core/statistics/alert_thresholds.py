"""When a tenant's administrators are told of a day or month, and when it is at its ceiling (R-BUDGET-10)."""

from decimal import Decimal
from math import ceil
from typing import Final

from budgets.core.amounts import ZERO
from budgets.core.posting import LineState

THRESHOLDS: Final = (50, 80, 95, 100)
FULL: Final = 100
# The last twentieth: where it is too little for a run that is turned away, administrators are told.
LAST_PART: Final = 20
SOON: Final = 30


def compute_reached_thresholds(line: LineState) -> tuple[int, ...]:
    """The thresholds, in percent of the limit, that what is spent and held has come to. A limit of zero
    forbids spending and is never reached (R-BUDGET-16)."""
    if not line.limit:
        return ()
    return tuple(threshold for threshold in THRESHOLDS if holds_still(line, threshold))


def newly_reached(before: LineState, after: LineState) -> tuple[int, ...]:
    """The thresholds that a change of the line, or of its limit, came to."""
    known = compute_reached_thresholds(before)
    return tuple(threshold for threshold in compute_reached_thresholds(after) if threshold not in known)


def holds_still(line: LineState, threshold: int) -> bool:
    """Whether a share, in percent, that was told is taken of the limit now."""
    return bool(line.limit) and (line.used + line.reserved) * 100 >= (line.limit or ZERO) * threshold


def at_ceiling(line: LineState) -> bool:
    """Whether nothing more is admitted: nothing is left. What is left and too little for one run may do for
    another."""
    return bool(line.limit) and line.left is not None and not line.left


def bears_in(line: LineState, wanted: Decimal, seconds_left: float) -> int:
    """In how many seconds a line that has less left than `wanted` is worth another try: `opens_in`."""
    spent_alone = line._replace(reserved=ZERO).left
    seconds = max(1, ceil(seconds_left))
    return seconds if spent_alone is None or spent_alone < wanted else min(seconds, SOON)


def opens_in(line: LineState, seconds_left: float) -> int:
    """In how many seconds a line at its ceiling is worth another try (R-BUDGET-10): when its window turns, or
    soon, where it is full only for what runs under way hold: what they do not spend comes back."""
    spent_alone = line._replace(reserved=ZERO)
    seconds = max(1, ceil(seconds_left))
    return seconds if at_ceiling(spent_alone) else min(seconds, SOON)

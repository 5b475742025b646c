"""Alert thresholds of a tenant's day or month, and the test for a reached ceiling (R-BUDGET-10)."""

from decimal import Decimal
from math import ceil
from typing import Final

from budgets.core.amounts import ZERO
from budgets.core.posting import LineState

THRESHOLDS: Final = (50, 80, 95, 100)
FULL: Final = 100
# The last twentieth: administrators are notified when it is too little for a run that is then refused.
LAST_PART: Final = 20
SOON: Final = 30


def compute_reached_thresholds(line: LineState) -> tuple[int, ...]:
    """Return the thresholds, in percent of the limit, that spent and held money has reached.

    A limit of zero forbids spending and is never reached (R-BUDGET-16).
    """
    if not line.limit:
        return ()
    return tuple(threshold for threshold in THRESHOLDS if holds_still(line, threshold))


def newly_reached(before: LineState, after: LineState) -> tuple[int, ...]:
    """Return the thresholds newly reached by a change of the line or of its limit."""
    known = compute_reached_thresholds(before)
    return tuple(threshold for threshold in compute_reached_thresholds(after) if threshold not in known)


def holds_still(line: LineState, threshold: int) -> bool:
    """Return whether spent and held money is at or above `threshold` percent of the current limit."""
    return bool(line.limit) and (line.used + line.reserved) * 100 >= (line.limit or ZERO) * threshold


def at_ceiling(line: LineState) -> bool:
    """Return whether the line has nothing left, so that nothing more is admitted.

    A remainder that is too little for one run may be enough for another.
    """
    return bool(line.limit) and line.left is not None and not line.left


def bears_in(line: LineState, wanted: Decimal, seconds_left: float) -> int:
    """Return the seconds after which a line with less left than `wanted` is worth another try.

    See `opens_in`.
    """
    spent_alone = line._replace(reserved=ZERO).left
    seconds = max(1, ceil(seconds_left))
    return seconds if spent_alone is None or spent_alone < wanted else min(seconds, SOON)


def opens_in(line: LineState, seconds_left: float) -> int:
    """Return the seconds after which a line at its ceiling is worth another try (R-BUDGET-10).

    That is the end of its window, or soon if the line is full only because of money held for runs in
    progress: money that they do not spend is released.
    """
    spent_alone = line._replace(reserved=ZERO)
    seconds = max(1, ceil(seconds_left))
    return seconds if at_ceiling(spent_alone) else min(seconds, SOON)

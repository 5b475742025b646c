"""Lower and upper bounds of a remaining amount, from observations of similar runs (R-BUDGET-4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from types import MappingProxyType
from typing import Final

from budgets.core.amounts import ZERO
from budgets.core.dimension import Dimension

# Number of observations kept: the minimum and maximum of twenty enclose nine in ten of the next values.
KEPT: Final = 20
# Fewer observations give no estimate.
LEAST: Final = 8
MICRO: Final = Decimal("0.000001")
ONE: Final = Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds of the remaining amount of a dimension; an upper bound of None is unknown."""

    lower: Decimal = ZERO
    upper: Decimal | None = None

    def within(self, amount: Decimal) -> bool:
        """Return whether the interval contains `amount`."""
        return self.lower <= amount and (self.upper is None or amount <= self.upper)

    def at_least(self, amount: Decimal) -> "Interval":
        """Return the interval raised to a known minimum, whatever was observed."""
        lower = max(self.lower, amount)
        return Interval(lower=lower, upper=None if self.upper is None else max(self.upper, lower))


UNKNOWN: Final = Interval()

# Factors by which the bounds exceed the observations, downwards and upwards: counts repeat exactly, tokens
# and money vary with the text, and time varies with the machine.
SLACK: Final[Mapping[Dimension, tuple[Decimal, Decimal]]] = MappingProxyType(
    {
        Dimension.INPUT_TOKENS: (Decimal("0.9"), Decimal("1.1")),
        Dimension.OUTPUT_TOKENS: (Decimal("0.8"), Decimal("1.25")),
        Dimension.TOTAL_TOKENS: (Decimal("0.9"), Decimal("1.1")),
        Dimension.COST_USD: (Decimal("0.9"), Decimal("1.1")),
        Dimension.WALL_CLOCK_SECONDS: (Decimal("0.2"), Decimal(5)),
    }
)
# The next value after k kinds lies outside their range with probability 2 / (k + 1). A run is often much
# shorter than those observed (nothing to do) and seldom much longer. Both factors multiply that probability.
SHORTER: Final = Decimal("1.5")
LONGER: Final = Decimal("0.5")
# Dimensions compared to stop early. Time is excluded, since it depends on the machine more than on the run.
STOPPING: Final = tuple(
    dimension
    for dimension in Dimension
    if not dimension.gauge and dimension not in (Dimension.WALL_CLOCK_SECONDS, Dimension.TRANSITIONS)
)


def estimate_interval(dimension: Dimension, seen: Sequence[Decimal], kinds: int = KEPT) -> Interval:
    """Estimate bounds from observations: minimum and maximum of the newest ones, with slack.

    The upper bound is wider while there are few observations; below `LEAST` of them the result is unknown.

    `kinds` is the number of different things observed: the same thing seen twenty times is one observation,
    and the next one may be unlike all of them. The fewer kinds, the wider the bounds are in both
    directions.
    """
    newest = seen[-KEPT:]
    if len(newest) < LEAST:
        return UNKNOWN
    least, most = min(newest), max(newest)
    down, up = SLACK.get(dimension, (ONE, ONE))
    beyond = max(ZERO, 2 * ONE / (kinds + 1) - 2 * ONE / (KEPT + 1))
    down, up = down * max(ZERO, ONE - SHORTER * beyond), up * (ONE + LONGER * beyond)
    few = (most - least) * (KEPT - len(newest)) / KEPT
    step = MICRO if dimension in (Dimension.COST_USD, Dimension.WALL_CLOCK_SECONDS) else ONE
    return Interval(
        lower=(least * down).quantize(step, rounding=ROUND_FLOOR),
        upper=((most + few) * up).quantize(step, rounding=ROUND_CEILING),
    )

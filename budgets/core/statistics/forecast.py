"""What is still to come of something, from what came of others like it: a lower and an upper bound
(R-BUDGET-4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from types import MappingProxyType
from typing import Final

from budgets.core.amounts import ZERO
from budgets.core.dimension import Dimension

# So many observations are kept: the least and the greatest of twenty enclose nine in ten of what follows.
KEPT: Final = 20
# Fewer say nothing.
LEAST: Final = 8
MICRO: Final = Decimal("0.000001")
ONE: Final = Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds of what remains of a dimension; an upper bound of None is unknown."""

    lower: Decimal = ZERO
    upper: Decimal | None = None

    def within(self, amount: Decimal) -> bool:
        """Whether the interval holds `amount`."""
        return self.lower <= amount and (self.upper is None or amount <= self.upper)

    def at_least(self, amount: Decimal) -> "Interval":
        """The interval where `amount` is known to remain whatever was observed."""
        lower = max(self.lower, amount)
        return Interval(lower=lower, upper=None if self.upper is None else max(self.upper, lower))


UNKNOWN: Final = Interval()

# How far beyond what was seen the bounds reach, downwards and upwards: what is counted repeats itself, tokens
# and money vary with the words, and time with the machine.
SLACK: Final[Mapping[Dimension, tuple[Decimal, Decimal]]] = MappingProxyType(
    {
        Dimension.INPUT_TOKENS: (Decimal("0.9"), Decimal("1.1")),
        Dimension.OUTPUT_TOKENS: (Decimal("0.8"), Decimal("1.25")),
        Dimension.TOTAL_TOKENS: (Decimal("0.9"), Decimal("1.1")),
        Dimension.COST_USD: (Decimal("0.9"), Decimal("1.1")),
        Dimension.WALL_CLOCK_SECONDS: (Decimal("0.2"), Decimal(5)),
    }
)
# The next of k kinds lies beyond what they span with probability 2 / (k + 1). A way is easily much shorter
# than those seen, where there was nothing to do; seldom much longer. In parts of that probability.
SHORTER: Final = Decimal("1.5")
LONGER: Final = Decimal("0.5")
# What is compared to stop early: time is not, for it says more of the machine than of the run.
STOPPING: Final = tuple(
    dimension
    for dimension in Dimension
    if not dimension.gauge and dimension not in (Dimension.WALL_CLOCK_SECONDS, Dimension.TRANSITIONS)
)


def estimate_interval(dimension: Dimension, seen: Sequence[Decimal], kinds: int = KEPT) -> Interval:
    """The bounds that observations give: the least and the greatest of the newest, with slack, and wider
    above while there are few. Unknown below `LEAST` of them.

    `kinds` says of how many different things they are: the same thing seen twenty times is one observation,
    and the next one may be like none of them. The fewer kinds, the wider the bounds are, both ways.
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

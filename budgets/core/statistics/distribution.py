"""How a figure of ended runs is spread, beside its cap, and whether it drifts (R-BUDGET-14).

Drift is a two-sample Kolmogorov-Smirnov test of the newest runs against as many before them, at a level of
one in a hundred, and a median that moved by a tenth at least: a great many runs make any difference
significant, a few make any difference large. Below thirty runs on either side nothing is said.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt
from typing import Final

LEAST: Final = 30
# The factor of the critical distance for a level of 0.01.
CRITICAL: Final = 1.628
SHIFT: Final = Decimal("0.1")
BINS: Final = 16
NEAR: Final = Decimal("0.8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The medians before and now, and how far apart the two distributions are (0 to 1)."""

    before: Decimal
    now: Decimal
    distance: float
    critical: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Quantiles of the newest runs, the cap that the newest of them had (None: none), how many of them came
    within a fifth of their own cap, counts in equal parts from zero to `highest`, and the drift."""

    count: int
    p50: Decimal
    p90: Decimal
    p99: Decimal
    highest: Decimal
    cap: Decimal | None
    near: int
    bins: tuple[int, ...]
    drift: Drift | None


Figure = tuple[Decimal, Decimal | None]
"""What a run took, and its cap."""


def spread_of(newest: Sequence[Figure], before: Sequence[Figure]) -> Spread | None:
    """The spread of the newest runs (newest first) against those before them; None without any."""
    if not newest:
        return None
    amounts = sorted(amount for amount, _ in newest)
    return Spread(
        count=len(amounts),
        p50=compute_quantile(amounts, 50),
        p90=compute_quantile(amounts, 90),
        p99=compute_quantile(amounts, 99),
        highest=amounts[-1],
        cap=newest[0][1],
        near=sum(cap is not None and cap > 0 and amount >= cap * NEAR for amount, cap in newest),
        bins=_count_bins(amounts),
        drift=drift_of(sorted(amount for amount, _ in before), amounts),
    )


def compute_quantile(ordered: Sequence[Decimal], percent: int) -> Decimal:
    """The smallest amount that so many percent do not exceed."""
    place = -(-len(ordered) * percent // 100)
    return ordered[max(0, place - 1)]


def drift_of(before: Sequence[Decimal], now: Sequence[Decimal]) -> Drift | None:
    """The drift between two ordered samples, or None."""
    if min(len(before), len(now)) < LEAST:
        return None
    distance = distance_of(before, now)
    critical = CRITICAL * sqrt((len(before) + len(now)) / (len(before) * len(now)))
    was, is_ = compute_quantile(before, 50), compute_quantile(now, 50)
    if distance <= critical or abs(is_ - was) < SHIFT * max(was, is_) or was == is_:
        return None
    return Drift(before=was, now=is_, distance=distance, critical=critical)


def distance_of(one: Sequence[Decimal], other: Sequence[Decimal]) -> float:
    """The greatest difference of two ordered samples' distribution functions."""
    return max(
        (
            abs(bisect_right(one, at) / len(one) - bisect_right(other, at) / len(other))
            for at in (*one, *other)
        ),
        default=0.0,
    )


def _count_bins(amounts: Sequence[Decimal]) -> tuple[int, ...]:
    counts = [0] * BINS
    highest = amounts[-1]
    for amount in amounts:
        place = 0 if highest <= 0 else min(BINS - 1, int(amount * BINS / highest))
        counts[place] += 1
    return tuple(counts)

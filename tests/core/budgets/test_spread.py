"""How figures of ended runs are spread, and when they drift (R-BUDGET-14)."""

from decimal import Decimal
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from budgets.core.statistics.distribution import (
    BINS,
    LEAST,
    Figure,
    compute_quantile,
    distance_of,
    drift_of,
    spread_of,
)
from tests.proves import proves


def figures(*amounts: int, cap: int | None = 10) -> list[Figure]:
    """What runs took, under one cap."""
    return [(Decimal(amount), None if cap is None else Decimal(cap)) for amount in amounts]


def sample(seed: int, mean: float, size: int = 200) -> list[Decimal]:
    """An ordered sample of a bell curve."""
    dice = Random(seed)
    return sorted(
        Decimal(round(max(0.0, dice.gauss(mean, mean / 5)), 3)).quantize(Decimal("0.001"))
        for _ in range(size)
    )


@proves("R-BUDGET-14", part="quantiles against the cap")
def test_quantiles_stand_beside_the_newest_cap_and_near_ones_are_counted() -> None:
    found = spread_of(figures(9, 1, 2, 3, 8, 4, 5, 6, 7, 10), [])
    assert found is not None
    assert (found.p50, found.p90, found.highest, found.cap) == tuple(map(Decimal, (5, 9, 10, 10)))
    assert found.near == 3
    assert sum(found.bins) == 10


def test_no_runs_have_no_spread_and_runs_without_a_cap_are_near_nothing() -> None:
    assert spread_of([], []) is None
    found = spread_of(figures(0, 0, cap=None), [])
    assert found is not None
    assert (found.near, found.bins[0]) == (0, 2)


@proves("R-BUDGET-14", part="drift flagged")
def test_a_shift_by_a_half_is_drift_and_the_same_curve_again_is_not() -> None:
    assert drift_of(sample(1, 10), sample(2, 10)) is None
    found = drift_of(sample(1, 10), sample(2, 15))
    assert found is not None
    assert found.distance > found.critical
    assert found.now > found.before


def test_a_difference_that_is_significant_but_small_is_not_drift() -> None:
    assert drift_of(sample(1, 10, 5_000), sample(2, Decimal("10.5").__float__(), 5_000)) is None


def test_of_a_few_runs_nothing_is_said() -> None:
    few = sample(1, 10, LEAST - 1)
    assert drift_of(few, sample(2, 100)) is None


AMOUNTS = st.lists(st.decimals(min_value=0, max_value=1000, places=3), min_size=1, max_size=80)


@given(AMOUNTS, AMOUNTS)
def test_the_distance_is_symmetric_and_within_bounds(one: list[Decimal], other: list[Decimal]) -> None:
    here, there = sorted(one), sorted(other)
    assert distance_of(here, there) == distance_of(there, here)
    assert 0 <= distance_of(here, there) <= 1
    assert distance_of(here, here) == 0


@given(AMOUNTS)
def test_every_run_stands_in_one_part_and_quantiles_are_amounts_that_occurred(amounts: list[Decimal]) -> None:
    found = spread_of([(amount, None) for amount in amounts], [])
    assert found is not None
    assert (sum(found.bins), len(found.bins)) == (len(amounts), BINS)
    ordered = sorted(amounts)
    for percent in (1, 50, 90, 99, 100):
        at = compute_quantile(ordered, percent)
        assert at in ordered
        assert sum(amount <= at for amount in ordered) * 100 >= percent * len(ordered)

"""When administrators are told, and when a window is at its ceiling (R-BUDGET-10)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.core.posting import LineState
from budgets.core.statistics.alert_thresholds import (
    THRESHOLDS,
    at_ceiling,
    compute_reached_thresholds,
    newly_reached,
)
from tests.proves import proves


def line(used: str, reserved: str = "0", limit: str | None = "10") -> LineState:
    """A line in US$."""
    return LineState(
        limit=None if limit is None else Decimal(limit), used=Decimal(used), reserved=Decimal(reserved)
    )


@proves("R-BUDGET-10", part="thresholds")
def test_a_threshold_is_reached_by_what_is_spent_and_held_together() -> None:
    assert compute_reached_thresholds(line("4.99")) == ()
    assert compute_reached_thresholds(line("3", "2")) == (50,)
    assert compute_reached_thresholds(line("9.5")) == (50, 80, 95)
    assert compute_reached_thresholds(line("10")) == THRESHOLDS
    assert compute_reached_thresholds(line("11")) == THRESHOLDS


@pytest.mark.parametrize("limit", [None, "0"])
def test_no_ceiling_and_a_ceiling_of_zero_are_never_reached(limit: str | None) -> None:
    assert compute_reached_thresholds(line("5", limit=limit)) == ()
    assert not at_ceiling(line("5", limit=limit))


def test_a_lowered_limit_reaches_what_the_higher_one_had_not() -> None:
    assert newly_reached(line("5"), line("5", limit="6")) == (80,)


@proves("R-BUDGET-10", part="ceiling")
def test_a_window_is_at_its_ceiling_once_nothing_is_left() -> None:
    assert not at_ceiling(line("9.999999"))
    assert at_ceiling(line("6", "4"))
    assert at_ceiling(line("11"))
    assert not at_ceiling(line("11", limit=None))


AMOUNTS = st.decimals(min_value=0, max_value=100, places=2)


@given(st.lists(AMOUNTS, max_size=20), st.decimals(min_value="0.01", max_value=100, places=2))
def test_however_a_window_fills_each_threshold_is_newly_reached_once(
    steps: list[Decimal], limit: Decimal
) -> None:
    told: list[int] = []
    before = LineState(limit=limit)
    for step in steps:
        after = LineState(limit=limit, used=before.used + step)
        told += newly_reached(before, after)
        before = after
    assert told == list(compute_reached_thresholds(before))

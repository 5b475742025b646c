"""Where spending is heading (R-UI-7)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from budgets.core.statistics.spend_forecast import SpendForecast, forecast_spending
from tests.proves import proves

START = datetime(2026, 11, 1, tzinfo=UTC)
END = START + timedelta(days=30)


def after(days: float, spent: str, *, held: str = "0", limit: str | None = "100") -> SpendForecast | None:
    """The outlook some days into a month of thirty."""
    ceiling = None if limit is None else Decimal(limit)
    at = START + timedelta(days=days)
    return forecast_spending(Decimal(spent), Decimal(held), ceiling, start=START, end=END, at=at)


@proves("R-UI-7", part="forecast")
def test_the_pace_so_far_is_carried_on_to_the_end() -> None:
    assert after(10, "20") == SpendForecast(daily=Decimal("2.00"), by_the_end=Decimal("60.00"), stops_at=None)


@proves("R-UI-7", part="projected stop")
def test_a_pace_that_meets_the_ceiling_says_when() -> None:
    found = after(10, "50", held="10")
    assert found is not None
    assert found.stops_at == START + timedelta(days=18)
    assert found.by_the_end == Decimal("150.00")


def test_what_is_full_has_stopped_now() -> None:
    found = after(3, "90", held="10")
    assert found is not None
    assert found.stops_at == START + timedelta(days=3)


def test_no_spending_and_no_ceiling_never_stop() -> None:
    for found in (after(3, "0"), after(3, "500", limit=None)):
        assert found is not None
        assert found.stops_at is None


def test_the_first_hour_says_nothing() -> None:
    assert after(0.01, "5") is None


@proves("R-BUDGET-14", part="a small pace is not rounded away")
def test_a_pace_below_a_cent_a_day_is_told_and_carried_on() -> None:
    found = after(10, "0.02", limit=None)
    assert found is not None
    assert (found.daily, found.by_the_end) == (Decimal("0.002"), Decimal("0.06"))


@given(
    st.decimals(min_value=0, max_value=10**6, places=6),
    st.integers(min_value=3_600, max_value=30 * 86_400),
)
def test_the_forecast_is_what_the_pace_comes_to(spent: Decimal, seconds: int) -> None:
    found = after(seconds / 86_400, str(spent), limit=None)
    assert found is not None
    assert found.by_the_end >= spent
    assert abs(found.daily * 30 - found.by_the_end) <= Decimal("0.00002")

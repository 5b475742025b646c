"""A tenant's day is the calendar day of its own time zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.core.periods import day_of, month_of
from tests.proves import proves

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe")
MOMENTS = st.integers(946_684_800, 2_208_988_800).map(lambda second: datetime.fromtimestamp(second, UTC))


@proves("R-BUDGET-9", part="time zone")
def test_a_day_begins_at_the_tenants_midnight() -> None:
    day = day_of(datetime(2026, 11, 20, 23, 30, tzinfo=UTC), ZoneInfo("Europe/Berlin"))
    assert day.start == datetime(2026, 11, 20, 23, tzinfo=UTC)
    assert day.end == datetime(2026, 11, 21, 23, tzinfo=UTC)


@pytest.mark.parametrize(("date", "hours"), [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 6, 1), 24)])
def test_a_day_is_as_long_as_its_clocks_say(date: tuple[int, int, int], hours: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    day = day_of(datetime(*date, 12, tzinfo=zone), zone)
    assert day.end - day.start == timedelta(hours=hours)


def test_a_month_ends_with_the_tenants_year() -> None:
    month = month_of(datetime(2026, 12, 31, 23, tzinfo=UTC), ZoneInfo("America/New_York"))
    assert month.end == datetime(2027, 1, 1, 5, tzinfo=UTC)


@given(at=MOMENTS, zone=st.sampled_from(ZONES))
def test_every_moment_lies_in_its_day_and_its_day_in_its_month(at: datetime, zone: str) -> None:
    day, month = day_of(at, ZoneInfo(zone)), month_of(at, ZoneInfo(zone))
    assert day.start <= at < day.end
    assert month.start <= day.start < day.end <= month.end


@given(at=MOMENTS, zone=st.sampled_from(ZONES))
def test_days_join_without_gap_or_overlap(at: datetime, zone: str) -> None:
    day = day_of(at, ZoneInfo(zone))
    assert day_of(day.end, ZoneInfo(zone)).start == day.end

"""A tenant's days and months in its own time zone, as half-open intervals of UTC instants (R-BUDGET-9)."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo


class Span(NamedTuple):
    """From `start` up to, and without, `end`."""

    start: datetime
    end: datetime


def day_of(at: datetime, zone: ZoneInfo) -> Span:
    """The tenant's calendar day that holds `at`: 23, 24 or 25 hours long."""
    first = at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return Span(_to_utc_time(first), _to_utc_time(_truncate_to_midnight(first + timedelta(days=1))))


def month_of(at: datetime, zone: ZoneInfo) -> Span:
    """The tenant's calendar month that holds `at`."""
    first = at.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)
    return Span(
        _to_utc_time(first), _to_utc_time(_truncate_to_midnight((first + timedelta(days=32)).replace(day=1)))
    )


def _truncate_to_midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _to_utc_time(moment: datetime) -> datetime:
    return moment.astimezone(UTC)

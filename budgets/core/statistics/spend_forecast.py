"""Where spending is heading: how fast, how far by the window's end, and when it stops (R-UI-7)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

# As exact as money is stored for people: a pace of less than a cent a day is still a pace.
STEP: Final = Decimal("0.000001")
SHORTEST: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendForecast:
    """US$ a day so far, US$ by the end at that pace, and when the ceiling is met, if before the end."""

    daily: Decimal
    by_the_end: Decimal
    stops_at: datetime | None


def forecast_spending(
    spent: Decimal, held: Decimal, limit: Decimal | None, *, start: datetime, end: datetime, at: datetime
) -> SpendForecast | None:
    """The outlook of a window from what was `spent` in it by `at`; None in its first hour, which says
    nothing yet."""
    passed = at - start
    if passed < SHORTEST:
        return None
    begun, left = _to_exact_seconds(passed), max(Decimal(0), _to_exact_seconds(end - at))
    # Multiplied before it is divided: a rounded pace would grow with the days it is carried on.
    return SpendForecast(
        daily=_round_amount(spent * 86_400 / begun),
        by_the_end=_round_amount(spent * (begun + left) / begun),
        stops_at=_forecast_stop_time(spent, held, limit, begun=begun, at=at, end=end),
    )


def _forecast_stop_time(
    spent: Decimal, held: Decimal, limit: Decimal | None, *, begun: Decimal, at: datetime, end: datetime
) -> datetime | None:
    if limit is None:
        return None
    if spent + held >= limit:
        return at
    if not spent:
        return None
    seconds = (limit - spent - held) * begun / spent
    if seconds >= _to_exact_seconds(end - at):
        return None
    return at + timedelta(seconds=float(seconds))


def _to_exact_seconds(span: timedelta) -> Decimal:
    """Exactly: a float would lose microseconds."""
    return Decimal(span // timedelta(microseconds=1)) / 1_000_000


def _round_amount(amount: Decimal) -> Decimal:
    return amount.quantize(STEP, rounding=ROUND_HALF_EVEN)

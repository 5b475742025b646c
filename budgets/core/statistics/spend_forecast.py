"""Spending forecast of a window: pace, total at its end, and the time of reaching the ceiling.

Spec: R-UI-7.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

# Fine enough that a pace of less than a cent per day is not rounded to zero.
STEP: Final = Decimal("0.000001")
SHORTEST: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendForecast:
    """A forecast: US$ per day so far, US$ by the end at that pace, and the time the ceiling is reached.

    `stops_at` is None if the ceiling is not reached before the end.
    """

    daily: Decimal
    by_the_end: Decimal
    stops_at: datetime | None


def forecast_spending(
    spent: Decimal, held: Decimal, limit: Decimal | None, *, start: datetime, end: datetime, at: datetime
) -> SpendForecast | None:
    """Forecast a window from the amount `spent` in it by `at`.

    None in the first hour of the window, which is too short for a forecast.
    """
    passed = at - start
    if passed < SHORTEST:
        return None
    begun, left = _to_exact_seconds(passed), max(Decimal(0), _to_exact_seconds(end - at))
    # Multiply before dividing: the error of a rounded pace would grow with the number of days.
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
    """Convert to seconds exactly: a float would lose microseconds."""
    return Decimal(span // timedelta(microseconds=1)) / 1_000_000


def _round_amount(amount: Decimal) -> Decimal:
    return amount.quantize(STEP, rounding=ROUND_HALF_EVEN)

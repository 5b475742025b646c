"""Where spending is heading: how fast, how far by the window's end, and when it stops (R-UI-7)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

CENT: Final = Decimal("0.01")
SHORTEST: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """US$ a day so far, US$ by the end at that pace, and when the ceiling is met, if before the end."""

    daily: Decimal
    by_the_end: Decimal
    stops_at: datetime | None


def outlook(
    spent: Decimal, held: Decimal, limit: Decimal | None, *, start: datetime, end: datetime, at: datetime
) -> Outlook | None:
    """The outlook of a window from what was `spent` in it by `at`; None in its first hour, which says
    nothing yet."""
    passed = at - start
    if passed < SHORTEST:
        return None
    per_second = spent / Decimal(passed.total_seconds())
    left = Decimal(max(0.0, (end - at).total_seconds()))
    by_the_end = spent + per_second * left
    return Outlook(
        daily=_cents(per_second * 86_400),
        by_the_end=_cents(by_the_end),
        stops_at=_stop(spent + held, limit, per_second, at, end),
    )


def _stop(
    taken: Decimal, limit: Decimal | None, per_second: Decimal, at: datetime, end: datetime
) -> datetime | None:
    if limit is None:
        return None
    if taken >= limit:
        return at
    if not per_second:
        return None
    seconds = (limit - taken) / per_second
    if seconds >= Decimal((end - at).total_seconds()):
        return None
    return at + timedelta(seconds=float(seconds))


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)

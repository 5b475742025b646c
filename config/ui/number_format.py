"""Formatting of numbers for people."""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

UNKNOWN = "unknown"
CENT = Decimal("0.01")
SMALL = Decimal("0.10")
DOLLARS = frozenset({"USD", "usd", "$"})
SECONDS = frozenset({"s", "seconds"})
MEASURED = DOLLARS | SECONDS
Number = Decimal | int | float | str


def format_money(amount: Number | None, currency: str = "$") -> str:
    """Format an amount with two decimals, four below $0.10, and always the currency.

    None is unknown, never zero.
    """
    if amount is None or amount == "":
        return UNKNOWN
    exact = Decimal(str(amount))
    step = Decimal("0.0001") if 0 < abs(exact) < SMALL else CENT
    shown = abs(exact).quantize(step, ROUND_HALF_UP)
    if shown == 0 and exact != 0:
        return f"< {currency}0.0001"
    return f"{'−' if exact < 0 else ''}{currency}{shown:,}"


def format_quantity(amount: Number | None, unit: str) -> str:
    """Format an amount with its unit: "USD" as money, seconds as a duration, counts with their label."""
    if amount is None or amount == "":
        return UNKNOWN
    if unit in DOLLARS:
        return format_money(amount)
    if unit in SECONDS:
        return format_duration(amount)
    exact = Decimal(str(amount))
    plain = f"{int(exact):,}" if exact == exact.to_integral_value() else f"{exact.normalize():,f}"
    return f"{plain} {unit}".strip()


def used_of(used: Number | None, reserved: Number | None, limit: Number | None, unit: str) -> str:
    """Format the text of a meter: "17 of 20 calls, 1 reserved", "$0.41 of $1.00"."""
    if limit is None:
        said = format_quantity(used, unit)
    else:
        said = f"{format_quantity(used, unit if unit in MEASURED else '')} of {format_quantity(limit, unit)}"
    if not reserved:
        return said
    return f"{said}, {format_quantity(reserved, unit if unit in MEASURED else '')} reserved"


def format_duration(seconds: Number | timedelta | None) -> str:
    """Format a duration in its two largest units: "0.4 s", "3 min 40 s", "2 h 5 min", "3 d 4 h"."""
    if seconds is None or seconds == "":
        return "–"
    exact = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    if exact < 0:
        return f"−{format_duration(-exact)}"
    if exact < 1:
        return f"{round(exact * 1000)} ms"
    if exact < 10:
        return f"{exact:.1f} s"
    whole = round(exact)
    if whole < 60:
        return f"{whole} s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for word, size in units:
        amount, whole = divmod(whole, size)
        if amount or parts:
            parts.append(f"{amount} {word}" if amount else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)


def compute_percentage(part: Number | None, whole: Number | None) -> Decimal:
    """Return `part` as a percentage of `whole`, clamped to 0–100.

    With a limit of zero, any positive part counts as 100. The result is 0 if either value is None.
    """
    if part is None or whole is None:
        return Decimal(0)
    above, below = Decimal(str(part)), Decimal(str(whole))
    if below <= 0:
        return Decimal(100) if above > 0 else Decimal(0)
    return min(max(above * 100 / below, Decimal(0)), Decimal(100)).quantize(CENT)

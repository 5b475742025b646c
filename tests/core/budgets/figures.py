"""Exact figures for tests of the core."""

from decimal import Decimal


def decimals(*figures: str | int) -> tuple[Decimal, ...]:
    """Exact figures side by side, to compare with."""
    return tuple(map(Decimal, figures))

"""Columns of a small chart, in numbers the template writes into SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

WIDTH, HEIGHT = 320, 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column, in the chart's units."""

    x: str
    y: int
    width: str
    height: int


def columns_of(amounts: Sequence[Decimal]) -> tuple[Column, ...]:
    """A column for each amount that is not nothing; the tallest as high as the chart, the smallest seen."""
    tallest, step = max(amounts, default=0), Decimal(WIDTH) / max(1, len(amounts))
    return tuple(
        Column(x=f"{place * step:.1f}", y=HEIGHT - height, width=f"{step - 2:.1f}", height=height)
        for place, amount in enumerate(amounts)
        if amount > 0
        for height in (max(2, int(amount * HEIGHT / tallest)),)
    )

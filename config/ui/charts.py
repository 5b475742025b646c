"""Shapes of small charts, in numbers the template writes into SVG."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

Value = Decimal | int | float
WIDTH, HEIGHT = 120, 24


class Bar(NamedTuple):
    """One bar: its label, the value as text, and its length in percent of the longest."""

    label: str
    text: str
    percent: Decimal


def build_sparkline_points(values: Sequence[Value], width: int = WIDTH, height: int = HEIGHT) -> str:
    """The points of a polyline through `values`, the greatest at the top and zero at the bottom."""
    if not values:
        return ""
    highest = max(0.0, *(float(value) for value in values)) or 1.0
    step = width / max(len(values) - 1, 1)
    return " ".join(
        f"{at * step:.1f},{height - 2 - (height - 4) * max(float(value), 0.0) / highest:.1f}"
        for at, value in enumerate(values)
    )


def build_bars(rows: Sequence[tuple[str, Value, str]]) -> list[Bar]:
    """Bars for (label, value, text) rows, in their order."""
    highest = max((Decimal(str(value)) for _label, value, _text in rows), default=Decimal(0))
    return [
        Bar(label, text, _compute_bar_percentage(Decimal(str(value)), highest)) for label, value, text in rows
    ]


def _compute_bar_percentage(value: Decimal, highest: Decimal) -> Decimal:
    if highest <= 0 or value <= 0:
        return Decimal(0)
    return (value * 100 / highest).quantize(Decimal("0.01"))

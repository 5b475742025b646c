"""The limit tables (R-BUDGET-1, R-GRAPH-11): five profiles, and what holds where a workflow says nothing."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final, Literal

from budgets.core.amounts import Vector
from budgets.core.dimension import Dimension

Mode = Literal["interactive", "async"]
ROWS: Final = (
    Dimension.STEPS,
    Dimension.MODEL_TURNS,
    Dimension.TOOL_CALLS,
    Dimension.EXTERNAL_CALLS,
    Dimension.INPUT_TOKENS,
    Dimension.OUTPUT_TOKENS,
    Dimension.COST_USD,
    Dimension.WALL_CLOCK_SECONDS,
    Dimension.RETRIES,
    Dimension.REFLECTIONS,
    Dimension.REPLANS,
    Dimension.CONTEXT_TOKENS,
    Dimension.MEMORY_WRITES,
    Dimension.SIDE_EFFECTS,
    Dimension.GRANTED_SIDE_EFFECTS,
    Dimension.DEPTH,
)


def _parse_limits(figures: str) -> Vector:
    return Vector.of(dict(zip(ROWS, map(Decimal, figures.split()), strict=True)))


PROFILES: Final[Mapping[str, Vector]] = MappingProxyType(
    {
        "research": _parse_limits("15 20 30 5 200000 30000 2.00 300 3 1 2 100000 2 0 1 2"),
        "coding": _parse_limits("30 40 50 10 400000 60000 5.00 600 5 2 2 200000 5 2 5 2"),
        "sre": _parse_limits("10 12 15 2 100000 15000 1.00 120 2 1 2 50000 0 0 2 2"),
        "support": _parse_limits("15 20 20 5 150000 20000 1.00 180 2 1 2 60000 1 0 4 2"),
        "procurement": _parse_limits("15 20 20 5 200000 20000 2.00 300 2 1 2 80000 0 0 2 2"),
    }
)
DEFAULTS: Final = Vector.of({Dimension.MODEL_TURNS: Decimal(10), Dimension.TOTAL_TOKENS: Decimal(50_000)})
_WALL_CLOCK: Final = MappingProxyType({"interactive": Decimal(60), "async": Decimal(300)})
_TOKENS: Final = (Dimension.INPUT_TOKENS, Dimension.OUTPUT_TOKENS, Dimension.TOTAL_TOKENS)


def limits_for(mode: Mode, *, profile: str | None = None, stated: Mapping[str, Decimal | None]) -> Vector:
    """The limits of a run: what the workflow states, over its profile, over the plain defaults (R-BUDGET-1).

    50 000 total tokens hold only where neither the workflow nor its profile limits tokens. Raises KeyError
    for an unknown profile, DimensionUnknown and AmountInvalid for what is stated wrongly.
    """
    base: dict[str, Decimal | None] = dict(PROFILES[profile]) if profile else {}
    limits = {**base, **stated}
    limits.setdefault(Dimension.MODEL_TURNS, DEFAULTS[Dimension.MODEL_TURNS])
    limits.setdefault(Dimension.WALL_CLOCK_SECONDS, _WALL_CLOCK[mode])
    if all(limits.get(name) is None for name in _TOKENS):
        limits[Dimension.TOTAL_TOKENS] = DEFAULTS[Dimension.TOTAL_TOKENS]
    return Vector.of(limits)

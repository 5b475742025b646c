"""A lane's account: opened on what its parent has left, and given back when it ends (R-BUDGET-8).

For the parent a lane is one more effect: what the lane may spend is reserved on the parent's lines, and when
the lane ends, what it used is settled there and the rest is free again. So the sum over a family never passes
what the parent was given, however many lanes run at once and however deep they nest, and every draw is a row
of the parent's ledger like any other. The tenant's day and month know the parent's reservation alone: a lane
holds no tranche of its own, or its money would be held twice.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from budgets.core.amounts import ZERO, Vector
from budgets.core.dimension import Dimension
from budgets.core.posting import LineState, Reserve, Settle

# What a lane does not draw: its own transitions are bounded by its own graph.
OWN: Final = frozenset({Dimension.TRANSITIONS})


def lane_effect(lane: str) -> str:
    """The effect under which a lane stands in its parent's ledger. `lane` is the lane's run id as hex."""
    return f"lane:{lane}"


def lane_limits(
    parent: Mapping[Dimension, LineState], wanted: Mapping[str, Decimal | None]
) -> dict[Dimension, Decimal | None]:
    """The limits of a lane that is to be opened now: what it wants, and never more than its parent has left.

    A dimension it does not name takes all that is left; one that the parent does not limit stays as wanted.
    Gauges are the parent's, `depth` one level less.
    """
    asked = Vector.of(wanted)
    return {
        dimension: _compute_lane_limit(dimension, line, asked.get(dimension))
        for dimension, line in parent.items()
    }


def _compute_lane_limit(dimension: Dimension, line: LineState, wanted: Decimal | None) -> Decimal | None:
    if dimension in OWN:
        return wanted
    left = line.limit if dimension.gauge else line.left
    if dimension is Dimension.DEPTH and left is not None:
        left = max(ZERO, left - 1)
    given = [amount for amount in (left, wanted) if amount is not None]
    return min(given, default=None)


def build_lane_reservation(lane: str, limits: Mapping[Dimension, Decimal | None]) -> Reserve:
    """What opening the lane reserves on its parent: all that the lane may spend of what is limited."""
    return Reserve(
        effect_id=lane_effect(lane),
        amounts={
            dimension.value: limit
            for dimension, limit in limits.items()
            if limit and not dimension.gauge and dimension not in OWN
        },
    )


def build_lane_settlement(lane: str, drawing: Reserve, lines: Mapping[Dimension, LineState]) -> Settle:
    """What the lane's end settles on its parent: what its lines say was used; the rest is the parent's again.

    Nothing of the lane may be in flight. What it used of a dimension that its parent does not limit is booked
    there too.
    """
    return Settle(
        effect_id=lane_effect(lane),
        reserved=drawing.amounts,
        actual={
            dimension.value: line.used
            for dimension, line in lines.items()
            if line.used and not dimension.gauge and dimension not in OWN
        },
    )

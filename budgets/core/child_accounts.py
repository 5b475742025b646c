"""A lane's account: opened from its parent's remaining budget, returned when the lane ends.

For the parent a lane is one more effect. The lane's whole budget is reserved on the parent's lines; when
the lane ends, its usage is settled there and the rest is released. The sum over a family therefore never
exceeds the parent's budget, however many lanes run at once and however deep they nest, and every draw is a
row of the parent's ledger. The tenant's day and month see only the parent's reservation: a lane holds no
tranche of its own, or its money would be held twice.

Spec: R-BUDGET-8.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from budgets.core.amounts import ZERO, Vector
from budgets.core.dimension import Dimension
from budgets.core.posting import LineState, Reserve, Settle

# Dimensions that a lane does not draw from its parent: its transitions are bounded by its own graph.
OWN: Final = frozenset({Dimension.TRANSITIONS})


def lane_effect(lane: str) -> str:
    """Return the effect id of a lane in its parent's ledger. `lane` is the lane's run id as hex."""
    return f"lane:{lane}"


def lane_limits(
    parent: Mapping[Dimension, LineState], wanted: Mapping[str, Decimal | None]
) -> dict[Dimension, Decimal | None]:
    """Compute the limits of a new lane: the wanted amounts, capped at the rest of the parent's budget.

    A dimension that `wanted` does not name takes all that is left; a dimension that the parent does not
    limit is unchanged. Gauges are those of the parent, with `depth` one level less.
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
    """Build the reservation of a lane on its parent: the lane's whole budget in limited dimensions."""
    return Reserve(
        effect_id=lane_effect(lane),
        amounts={
            dimension.value: limit
            for dimension, limit in limits.items()
            if limit and not dimension.gauge and dimension not in OWN
        },
    )


def build_lane_settlement(lane: str, drawing: Reserve, lines: Mapping[Dimension, LineState]) -> Settle:
    """Build the settlement of a lane on its parent at the lane's end, from the usage on the lane's lines.

    The rest is released to the parent. Nothing of the lane may be in flight. Usage in a dimension that the
    parent does not limit is booked there too.
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

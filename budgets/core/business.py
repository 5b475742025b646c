"""What a run is worth in money, for business use only: one figure beside the caps, never instead of one
(R-BUDGET-1).
"""

from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field

from budgets.core.dimension import Dimension
from budgets.core.vector import ZERO, Vector


class Rates(BaseModel):
    """US$ for one of each. `cost_usd` of the run (inference and priced calls) is counted as it stands."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    token: Decimal = Field(default=ZERO, ge=0)
    model_call: Decimal = Field(default=ZERO, ge=0)
    tool_call: Decimal = Field(default=ZERO, ge=0)
    api_call: Decimal = Field(default=ZERO, ge=0)
    gpu_second: Decimal = Field(default=ZERO, ge=0)
    human_review: Decimal = Field(default=ZERO, ge=0)


def business_cost(
    used: Vector, rates: Rates, *, gpu_seconds: Decimal = ZERO, human_reviews: int = 0
) -> Decimal:
    """What a run cost the house in US$. Nothing is enforced by it: it may be anything while every cap
    holds.
    """
    tokens = used.amount(Dimension.INPUT_TOKENS) + used.amount(Dimension.OUTPUT_TOKENS)
    return (
        used.amount(Dimension.COST_USD)
        + tokens * rates.token
        + used.amount(Dimension.MODEL_TURNS) * rates.model_call
        + used.amount(Dimension.TOOL_CALLS) * rates.tool_call
        + used.amount(Dimension.EXTERNAL_CALLS) * rates.api_call
        + gpu_seconds * rates.gpu_second
        + human_reviews * rates.human_review
    )

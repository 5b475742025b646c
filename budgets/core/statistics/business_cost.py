"""The business cost of a run in money: an informational figure next to the caps (R-BUDGET-1).

It never replaces a cap.
"""

from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field

from budgets.core.amounts import ZERO, Vector
from budgets.core.dimension import Dimension


class Rates(BaseModel):
    """US$ per unit of work. `cost_usd` of the run (inference and priced calls) is counted unchanged."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    token: Decimal = Field(default=ZERO, ge=0)
    model_call: Decimal = Field(default=ZERO, ge=0)
    tool_call: Decimal = Field(default=ZERO, ge=0)
    api_call: Decimal = Field(default=ZERO, ge=0)
    gpu_second: Decimal = Field(default=ZERO, ge=0)
    human_review: Decimal = Field(default=ZERO, ge=0)


class Part(BaseModel):
    """One kind of work in the figure: its amount, and US$ per unit."""

    model_config = ConfigDict(frozen=True)
    name: str
    amount: Decimal
    rate: Decimal

    @property
    def usd(self) -> Decimal:
        """The cost of this part in US$."""
        return self.amount * self.rate


def business_parts(
    used: Vector, rates: Rates, *, gpu_seconds: Decimal = ZERO, human_reviews: int = 0
) -> tuple[Part, ...]:
    """List the kinds of work of a run, each with its price.

    The amount charged for models and tools comes first, at a rate of 1. The sum is not enforced: it is
    independent of the caps.
    """
    amounts = {
        "token": used.amount(Dimension.INPUT_TOKENS) + used.amount(Dimension.OUTPUT_TOKENS),
        "model_call": used.amount(Dimension.MODEL_TURNS),
        "tool_call": used.amount(Dimension.TOOL_CALLS),
        "api_call": used.amount(Dimension.EXTERNAL_CALLS),
        "gpu_second": gpu_seconds,
        "human_review": Decimal(human_reviews),
    }
    charged = Part(name="charged", amount=used.amount(Dimension.COST_USD), rate=Decimal(1))
    return (
        charged,
        *(Part(name=name, amount=amount, rate=getattr(rates, name)) for name, amount in amounts.items()),
    )

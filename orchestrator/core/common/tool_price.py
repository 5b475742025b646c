"""What a call of a tool costs in place of a pinned price that was wrong (R-BUDGET-15)."""

from decimal import Decimal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel


class ToolPrice(FrozenModel):
    """US$ a call; `version` is how the right price is called."""

    usd: Decimal = Field(ge=0)
    version: str

"""The price of a tool call that replaces a wrong pinned price (R-BUDGET-15)."""

from decimal import Decimal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel


class ToolPrice(FrozenModel):
    """The price of one call in US$; `version` names the corrected price."""

    usd: Decimal = Field(ge=0)
    version: str

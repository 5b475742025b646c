"""The prices that a tenant's runs may be charged at, with source, and unknown prices (R-BUDGET-15).

Call it inside the tenant's context.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from budgets.core.errors import PriceUnknown
from budgets.core.pricing import ModelPrice
from budgets.models import Price
from budgets.price_lookup import price_for
from orchestrator.core.accounting.effect_pricing import price_of_tool, price_of_version
from orchestrator.llm.queries import profiles_now
from orchestrator.publishing.models import PinSet
from orchestrator.runs.queries.state_loader import pins_of
from orchestrator.spending.queries.mispriced_calls import WrongPrice
from orchestrator.tools.queries.tools import ToolNow, tools_now

VERSIONS: Final = 50
PINNED: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedModel:
    """A model and the price in force for it (None: unknown). `asked`: new runs are pinned to it."""

    provider: str
    model: str
    asked: bool
    price: ModelPrice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPrice:
    """One version of a price that the tenant set."""

    price: ModelPrice
    at: datetime
    by: UUID | None
    reason: str


def model_prices(tenant_id: UUID, at: datetime) -> list[PricedModel]:
    """Return the models that can be called, then those for which the tenant set a price."""
    asked: dict[tuple[str, str], ModelPrice | None] = {
        (profile.provider, profile.model): profile.price for profile in profiles_now(None, at)
    }
    rows = Price.objects.order_by("provider", "model").values_list("provider", "model").distinct()
    models = [*asked, *(named for named in rows if named not in asked)]
    found: list[PricedModel] = []
    for provider, model in models:
        price = _find_known_price(tenant_id, provider, model, at) or asked.get((provider, model))
        found.append(
            PricedModel(provider=provider, model=model, asked=(provider, model) in asked, price=price)
        )
    return found


def _find_known_price(tenant_id: UUID, provider: str, model: str, at: datetime) -> ModelPrice | None:
    try:
        return price_for(tenant_id, provider, model, at)
    except PriceUnknown:
        return None


def stated_versions(most: int = VERSIONS) -> list[StatedPrice]:
    """Return the prices that the tenant set, newest first."""
    rows = Price.objects.order_by("-valid_from", "-version")[:most]
    return [
        StatedPrice(
            price=ModelPrice.model_validate(row.price), at=row.valid_from, by=row.set_by, reason=row.reason
        )
        for row in rows
    ]


def tool_prices(tenant_id: UUID) -> list[ToolNow]:
    """Return the tools, those with an unknown price first."""
    return sorted(tools_now(tenant_id), key=lambda tool: (tool.spec.price_usd is not None, tool.spec.name))


def replaced_prices(tenant_id: UUID, at: datetime) -> list[WrongPrice]:
    """Return the prices of the newest pin sets that are no longer in force.

    These are the prices that may need a correction.
    """
    now = {f"{one.provider}:{one.model}": one.price for one in model_prices(tenant_id, at)}
    tools = {tool.spec.name: price_of_version(tool.spec) for tool in tools_now(tenant_id)}
    found: dict[WrongPrice, None] = {}
    for digest in _newest_pins():
        pins = pins_of(tenant_id, digest)
        for profile in pins.profiles:
            price = now.get(f"{profile.provider}:{profile.model}")
            if profile.price is not None and price is not None and price.version != profile.price.version:
                wrong = WrongPrice(
                    provider=profile.provider, model=profile.model, version=profile.price.version
                )
                found[wrong] = None
        for spec in pins.tools:
            charged = price_of_tool(pins, spec)
            if spec.name in tools and tools[spec.name] != charged:
                found[WrongPrice(tool=spec.name, version=charged)] = None
    return sorted(found, key=lambda wrong: (wrong.tool, wrong.provider, wrong.model, wrong.version))


def _newest_pins() -> Sequence[str]:
    return list(PinSet.objects.order_by("-id").values_list("digest", flat=True)[:PINNED])


def unknown_policy() -> str:
    """Return the handling of unknown prices: `worst` case, `free`, or `refuse`."""
    return str(settings.INTERLOCK_UNKNOWN_PRICE)

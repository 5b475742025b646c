"""Which price holds for a model: the tenant's own, else the listed one, else none (R-BUDGET-15)."""

from datetime import datetime
from uuid import UUID

from budgets.core.pricing import ModelPrice
from budgets.models import Price
from budgets.price_catalog import from_genai_prices


def price_for(tenant_id: UUID, provider: str, model: str, at: datetime) -> ModelPrice:
    """The price in force at `at`, to be pinned by a run. Raises PriceUnknown: by policy the run is then
    refused, or an admin declares a worst case with `declare_price`."""
    return own_price(tenant_id, provider, model, at) or from_genai_prices(provider, model, at)


def own_price(tenant_id: UUID, provider: str, model: str, at: datetime) -> ModelPrice | None:
    """The tenant's own price in force at `at`, its newest version; None where it declared none."""
    mine = Price.objects.filter(tenant_id=tenant_id, provider=provider, model=model, valid_from__lte=at)
    row = mine.order_by("-version").first()
    return None if row is None else ModelPrice.model_validate(row.price)

"""Prices: listed, declared in versions, or unknown."""

from datetime import timedelta
from decimal import Decimal

import pytest

from budgets.actions import declare_price
from budgets.core.errors import PriceUnknown
from budgets.core.pricing import ModelPrice, actual_cost
from budgets.models import Price
from budgets.price_catalog import from_genai_prices
from budgets.price_lookup import price_for
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.budgets import NOON
from tests.proves import proves

DECLARED = ModelPrice(
    provider="openai",
    model="house-model",
    input=Decimal("0.00001"),
    output=Decimal("0.00003"),
    source="declared",
    version="",
)


def test_a_listed_model_has_its_price_per_token() -> None:
    price = from_genai_prices("openai", "gpt-5", NOON)
    assert (price.input, price.output, price.cache_read) == (
        Decimal("0.00000125"), Decimal("0.00001"), Decimal("0.000000125"),
    )  # fmt: skip
    assert price.version.startswith("genai-prices ")


def test_a_long_input_has_its_own_rate() -> None:
    price = from_genai_prices("anthropic", "claude-sonnet-4-5", NOON)
    assert [(rate.above, rate.input) for rate in price.long] == [(200_000, Decimal("0.000006"))]
    assert actual_cost(price, {"input_tokens": Decimal(200_001)}) == 200_001 * Decimal("0.000006")


@proves("R-BUDGET-15")
def test_an_unlisted_model_is_unknown_until_somebody_declares_a_worst_case(house: House) -> None:
    with tenant_transaction(house.tenant.id):
        with pytest.raises(PriceUnknown):
            price_for(house.tenant.id, "openai", "house-model", NOON)
        declare_price(house.tenant.id, DECLARED, by=None, reason="the contract", at=NOON)
        assert price_for(house.tenant.id, "openai", "house-model", NOON).output == Decimal("0.00003")


@proves("B8", part="prices")
@proves("R-BUDGET-15", part="versions")
def test_a_new_price_is_a_new_version_and_the_old_one_stays(house: House) -> None:
    later = NOON + timedelta(hours=1)
    with tenant_transaction(house.tenant.id):
        pinned = declare_price(house.tenant.id, DECLARED, by=None, reason="first", at=NOON)
        cheaper = DECLARED.evolve(output=Decimal("0.00002"))
        declare_price(house.tenant.id, cheaper, by=None, reason="second", at=later)
        assert pinned.output == Decimal("0.00003")
        assert price_for(house.tenant.id, "openai", "house-model", NOON) == pinned
        assert price_for(house.tenant.id, "openai", "house-model", later).output == Decimal("0.00002")
        assert list(Price.objects.order_by("version").values_list("version", flat=True)) == [1, 2]

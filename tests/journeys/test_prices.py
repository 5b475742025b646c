"""A run is charged at the price it was pinned to: the tenant's own, the listed one, or a declared worst case
(R-BUDGET-15)."""

from decimal import Decimal

import pytest
from pytest_django import Settings

from budgets.actions import declare_price, record_cost_correction
from budgets.core.errors import PriceUnknown
from budgets.core.posting import Cause, Reserve
from budgets.core.pricing import ModelPrice
from budgets.ledger_verification import verify_ledger
from budgets.queries import list_run_entries
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.openai_server import OpenAIServer, said, usage
from tests.factories.budgets import NOON, amounts, ceilings, inside, open_purse
from tests.factories.foreign import foreign, onwards
from tests.factories.world import World, make_world
from tests.proves import proves

OWN = ModelPrice(
    provider="openai", model="default", input=Decimal("0.00001"), output=Decimal("0.0001"), source="tenant",
    version="",
)  # fmt: skip


def declare(world: World, price: ModelPrice) -> None:
    """A new version of the tenant's own price, from now on."""
    with tenant_transaction(world.id):
        declare_price(world.id, price, by=None, reason="the contract", at=database_now())


@proves("R-BUDGET-15", part="the tenant's own price, pinned")
@proves("R-TOOL-22", part="a listed price is overridden by one's own")
@proves("B8", part="a price changed during a run")
def test_a_run_is_charged_at_the_price_it_was_pinned_to(house: House, settings: Settings) -> None:
    server = OpenAIServer(said("Done.", usage=usage(100, 10)), said("Done.", usage=usage(100, 10)))
    with foreign(settings, server):
        world = make_world(house)
        declare(world, OWN)
        before = world.submit("tool-loop", "Say that it is done.")
        declare(world, OWN.evolve(input=Decimal("0.00002")))
        after = world.submit("tool-loop", "Say that it is done.")
        for run in (before, after):
            assert onwards(world, run).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        spent = {
            entry.price_version: entry.used["cost_usd"]
            for run in (before, after)
            for entry in list_run_entries(run)
            if entry.cause == Cause.SETTLE and entry.used.get("cost_usd") and not entry.tenant_line
        }
    assert spent == {"tenant 1": Decimal("0.002"), "tenant 2": Decimal("0.003")}
    world.sound(before)


@proves("R-BUDGET-15", part="refused by policy")
def test_a_model_whose_price_nobody_knows_is_refused_where_policy_says_so(
    house: House, settings: Settings
) -> None:
    with foreign(settings, OpenAIServer()):
        settings.INTERLOCK_UNKNOWN_PRICE = "refuse"
        world = make_world(house)
        with pytest.raises(PriceUnknown):
            world.submit("tool-loop", "Say that it is done.")
        declare(world, OWN)
        world.submit("tool-loop", "Say that it is done.")


@proves("R-BUDGET-15", part="balances and blocks follow a correction")
def test_what_a_wrong_price_blocked_goes_on_after_its_correction(house: House) -> None:
    ceilings(house.tenant.id, daily="0.60")
    purse = open_purse(house.tenant.id, {"cost_usd": 5})
    effect, _ = purse.reserve({"cost_usd": "0.50"})
    purse.settle(effect, {"cost_usd": "0.50"})
    wanted = Reserve(effect_id=fresh_id().hex, amounts=amounts({"cost_usd": "0.20"}))
    assert purse.post(reserves=(wanted,)).refused is not None
    with inside(house.tenant.id):
        record_cost_correction(
            purse.tenant, purse.run, effect_id=effect, delta=Decimal("-0.45"), price_version="2", by=None,
            reason="ten times too dear", at=NOON,
        )  # fmt: skip
    assert purse.post(reserves=(wanted,)).refused is None
    with inside(house.tenant.id):
        record_cost_correction(
            purse.tenant, purse.run, effect_id=effect, delta=Decimal("0.40"), price_version="3", by=None,
            reason="not so cheap", at=NOON,
        )  # fmt: skip
        assert verify_ledger() == []
    again = Reserve(effect_id=fresh_id().hex, amounts=amounts({"cost_usd": "0.20"}))
    assert purse.post(reserves=(again,)).refused is not None

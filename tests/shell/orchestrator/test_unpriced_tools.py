"""A tool whose price nobody has stated is not free: its calls are charged at the declared worst case, or
refused by policy (R-BUDGET-15)."""

from decimal import Decimal
from uuid import UUID

import pytest
from pytest_django import Settings

from budgets.queries import list_run_entries
from orchestrator.core.tools.registration import asked_admission
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.publishing.actions.versions import active_tools, publish_tools
from orchestrator.spending.actions.price_corrections import apply_price_correction
from orchestrator.spending.queries.mispriced_calls import WrongPrice
from orchestrator.tools.actions.tool_updates import change_tool
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.factories.foreign import called, foreign, onwards
from tests.factories.world import World, make_world
from tests.proves import proves

CALCULATOR = "calculator.evaluate"


def unpriced(house: House) -> World:
    """A house in which nobody has said what the calculator costs."""
    made = make_world(house)
    with tenant_transaction(made.id):
        tools = active_tools()
        unknown = tools[CALCULATOR].evolve(price_usd=None)
        publish_tools(made.id, tuple({**tools, CALCULATOR: unknown}.values()), by=None)
    return made


@pytest.fixture
def world(house: House) -> World:
    """Such a house, with the models that are shipped."""
    return unpriced(house)


def charges(world: World, run: UUID) -> dict[str, Decimal]:
    """US$ that the run settled, by the version of the price."""
    found: dict[str, Decimal] = {}
    with tenant_transaction(world.id):
        for entry in list_run_entries(run):
            if entry.effect_id and not entry.tenant_line and "cost_usd" in entry.used:
                before = found.get(entry.price_version, Decimal(0))
                found[entry.price_version] = before + entry.used["cost_usd"]
    return found


def test_an_admitted_tool_without_a_price_is_unknown_and_not_free() -> None:
    assert asked_admission({"risk": "read_only", "reversibility": "pure"}).price_usd is None


@proves("R-BUDGET-15", part="a tool at the declared worst case")
def test_a_call_without_a_price_is_reserved_and_charged_at_the_declared_worst_case(world: World) -> None:
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    assert world.drive(run).status == "completed"
    worst = f"{CALCULATOR}@2 worst case"
    assert charges(world, run)[worst] == Decimal("0.02")
    change_tool(world.id, CALCULATOR, asked_change({"price_usd": "0.001"}), by=None, reason="the contract")
    done = apply_price_correction(
        world.id, WrongPrice(tool=CALCULATOR, version=worst), by=None, reason="now it is known"
    )
    assert (done.calls, done.delta) == (2, Decimal("-0.018"))
    world.sound(run)


@proves("R-BUDGET-15", part="a call that was sent and refused")
def test_a_call_that_was_sent_and_refused_is_corrected_like_any_other(
    house: House, settings: Settings
) -> None:
    model = OpenAIServer(calls(called(CALCULATOR, expression="1 / 0")), said("No."))
    with foreign(settings, model):
        world = unpriced(house)
        run = world.submit("tool-loop", "How much is 1 / 0?")
        onwards(world, run)
    worst = f"{CALCULATOR}@2 worst case"
    assert [one["status"] for one in world.said(run, "call_observed")] == ["refused"]
    assert charges(world, run)[worst] == Decimal("0.01")
    change_tool(world.id, CALCULATOR, asked_change({"price_usd": "0.001"}), by=None, reason="the contract")
    wrong = WrongPrice(tool=CALCULATOR, version=worst)
    done = apply_price_correction(world.id, wrong, by=None, reason="now it is known")
    assert (done.calls, done.delta) == (1, Decimal("-0.009"))
    assert apply_price_correction(world.id, wrong, by=None, reason="again").calls == 0
    world.sound(run)


@proves("R-BUDGET-15", part="a tool refused by policy")
def test_where_policy_refuses_unknown_prices_the_call_is_refused_by_name(
    world: World, settings: Settings
) -> None:
    settings.INTERLOCK_UNKNOWN_PRICE = "refuse"
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    world.drive(run)
    denied = [said for said in world.said(run, "call_checked") if said["decision"] == "deny"]
    assert {said["rule"] for said in denied} == {"price_unknown"}
    assert world.said(run, "call_attempted") == []
    assert charges(world, run).keys() == {"scripted-1"}

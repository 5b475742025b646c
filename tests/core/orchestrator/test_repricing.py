"""A price corrected while a run is under way: what it charges from then on, and what a frozen run does
(R-BUDGET-15)."""

from decimal import Decimal

import pytest

from budgets.core.pricing import ModelPrice
from orchestrator.core.accounting.effect_pricing import price_of_effect
from orchestrator.core.accounting.price_correction import in_force
from orchestrator.core.common.tool_price import ToolPrice
from orchestrator.core.domain.run_events import CostCorrected, ModelFailed, PriceCorrected
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, LIMITS, TOOLS
from tests.core.orchestrator.simulation import Simulation, manifest, pins
from tests.core.orchestrator.test_economy import LOOKUP, asked, priced, profile
from tests.proves import proves

WRONG = profile("model", "0.01")
RIGHT = ModelPrice(
    provider="scripted", model="model", input=Decimal("0.02"), output=Decimal("0.02"), source="tenant",
    version="tenant 2",
)  # fmt: skip
FREE = RIGHT.evolve(input=Decimal(0), output=Decimal(0), version="tenant 3")


def corrected(run: Simulation, price: ModelPrice = RIGHT, *, more: bool = False) -> None:
    """The price of the run's model is another from now on."""
    run.feed(
        PriceCorrected(
            at=run.now, subject="scripted:model", models={"model": price}, was="model-1",
            price_version=price.version, by="somebody", reason="ten times too dear", more=more,
        )
    )  # fmt: skip


@proves("R-BUDGET-15", part="later calls at the right price")
def test_what_is_asked_for_after_a_correction_is_held_and_charged_at_the_right_price() -> None:
    run = priced(WRONG)
    corrected(run)
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    call = asked(run)
    tokens = call.reserve["total_tokens"]
    assert call.reserve["cost_usd"] == tokens * Decimal("0.02")
    assert price_of_effect(run.manifest.pins, run.state, call) == "tenant 2"


@proves("R-BUDGET-15", part="a call in flight at the right price")
def test_a_call_in_flight_is_charged_at_the_right_price_and_its_provider_is_not_blamed() -> None:
    run = priced(WRONG)
    # Every token that was held for it, at twice the price: more money than was held.
    held = asked(run).reserve
    corrected(run)
    run.feed(
        run.model_reply(asked(run), LOOKUP).evolve(
            usage={name: held[name] for name in ("input_tokens", "output_tokens")}
        )
    )
    (settled,) = run.said("budget_settled")
    assert settled.amounts["cost_usd"] == 2 * held["cost_usd"] == run.state.usage["cost_usd"]
    assert settled.overrun == {"cost_usd": held["cost_usd"]}
    assert (run.state.flagged, run.said("breaker_tripped")) == ((), [])
    assert run.fed[-1][3].settlements[0].price_version == "tenant 2"


def test_a_lost_reply_is_charged_for_what_was_held_at_the_right_price() -> None:
    run = priced(WRONG)
    held = asked(run).reserve["cost_usd"]
    corrected(run)
    run.feed(ModelFailed(at=run.now, effect=asked(run).id, error="timeout", transient=True))
    assert run.state.usage["cost_usd"] == 2 * held


@pytest.mark.parametrize("flying", [True, False], ids=["in flight", "later"])
def test_a_tool_that_was_free_by_mistake_costs_from_then_on(flying: bool) -> None:
    run = priced(WRONG.evolve(price=FREE))
    event = PriceCorrected(
        at=run.now, subject="orders.lookup", was="orders.lookup@1", price_version="orders.lookup@2",
        tools={"orders.lookup": ToolPrice(usd=Decimal("0.5"), version="orders.lookup@2")}, by="", reason="",
    )  # fmt: skip
    if flying:
        run.reply(LOOKUP)
        run.feed(event)
    else:
        run.feed(event)
        run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    assert run.state.usage["cost_usd"] == Decimal("0.5")
    versions = [one.price_version for *_, walk in run.fed for one in walk.settlements if one.effect]
    assert versions == ["tenant 3", "orders.lookup@2"]
    assert run.state.flagged == ()


def test_the_pins_stay_as_they_are() -> None:
    run = priced(WRONG)
    before = run.manifest.pins
    corrected(run)
    held = in_force(run.manifest, run.state.prices, run.state.tool_prices).pins
    assert (before.profiles[0].price, held.profiles[0].price) == (WRONG.price, RIGHT)
    assert in_force(run.manifest, {}, {}) is run.manifest


# -- a frozen run
# ----------------------------------------------------------------------------------------


def frozen() -> Simulation:
    """A run whose second model call asks for more money than it has left, and that asks people for more."""
    asking = BOUNDARY.evolve(on_exhaustion="request", budget_requests=1)
    held = pins(TOOLS, asking, ("tool-loop",)).evolve(profiles=(WRONG,))
    run = Simulation.of(GRAPH, manifest(GRAPH, held, LIMITS | {"cost_usd": 1_000}))
    run.start()
    run.state = run.state.evolve(usage={**run.state.usage, "cost_usd": Decimal(990)})
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    assert (run.state.status, len(run.requests)) == ("awaiting_gate", 1)
    return run


def fixed(run: Simulation, delta: int, *, more: bool = False) -> None:
    """What a call had cost is made good."""
    run.feed(
        CostCorrected(
            at=run.now, effect="1" * 32, delta=Decimal(delta), price_version="tenant 2", by="somebody",
            reason="too dear", more=more,
        )
    )  # fmt: skip


@proves("R-BUDGET-15", part="a block follows a correction")
@pytest.mark.parametrize("by", ["what was spent", "what comes"])
def test_a_frozen_run_goes_on_without_a_person_once_a_correction_leaves_it_enough(by: str) -> None:
    run = frozen()
    (request,) = run.requests
    if by == "what comes":
        corrected(run, FREE)
    else:
        fixed(run, -500)
    assert (run.state.status, run.state.frozen, run.requests) == ("in_progress", None, [])
    assert asked(run).node == "act"
    (withdrawn,) = run.said("approval_withdrawn")
    assert withdrawn.request == str(request.request)
    assert withdrawn.reason.startswith("the cost was corrected at price tenant")


@proves("R-BUDGET-15", part="a request says what changed")
def test_a_frozen_run_asks_anew_with_the_figures_of_the_moment_where_it_is_still_short() -> None:
    run = frozen()
    (before,) = run.requests
    fixed(run, 1, more=True)
    assert run.requests == [before]
    fixed(run, 1)
    (after,) = run.requests
    assert after.request != before.request
    assert run.state.counters.budget_requests == 1
    left = Decimal(1_000) - run.state.usage["cost_usd"]
    assert f"{left.normalize():f} is left" in run.contents[after.packet].decode()


def test_what_another_limit_froze_stays_frozen() -> None:
    run = frozen()
    halting = run.state.frozen
    assert halting is not None
    run.state = run.state.evolve(frozen=halting.evolve(reason="model_turns"))
    fixed(run, -500)
    assert len(run.requests) == 1

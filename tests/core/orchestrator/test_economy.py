"""With 80 % of its cost spent a run goes on with the cheaper model, and the agent knows (R-BUDGET-5)."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from budgets.core.pricing import ModelPrice
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.run_events import BudgetExtended, CostCorrected, ModelFailed, TimerFired
from orchestrator.core.llm.model_call import LEAST_OUTPUT
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, LIMITS, TOOLS
from tests.core.orchestrator.simulation import Simulation, manifest, pins
from tests.proves import proves

LOOKUP = ("orders.lookup", {"id": "A-1"})


def profile(name: str, rate: str, **more: Any) -> ModelProfile:
    """A model that costs `rate` US$ a token, whichever way."""
    price = ModelPrice(
        provider="scripted", model=name, input=Decimal(rate), output=Decimal(rate), source="scripted",
        version=f"{name}-1",
    )  # fmt: skip
    return ModelProfile(name=name, provider="scripted", model=name, price=price, max_output_tokens=10, **more)


DEAR, CHEAP = profile("dear", "0.01", cheaper="cheap"), profile("cheap", "0.0001", roles=("cheaper",))


def priced(*profiles: ModelProfile, cost: int = 1_000) -> Simulation:
    """A started run with these models and US$ to spend."""
    held = pins(TOOLS, BOUNDARY, ("tool-loop",)).evolve(profiles=profiles)
    run = Simulation.of(GRAPH, manifest(GRAPH, held, LIMITS | {"cost_usd": cost}))
    run.start()
    return run


def asked(run: Simulation) -> CallModel:
    """The open model call."""
    return next(effect for effect in run.open.values() if isinstance(effect, CallModel))


def turn(run: Simulation, spent: str, order: str = "A-1") -> None:
    """One turn and its look-up, after which the run has spent so much."""
    before = Decimal(spent) - Decimal("0.50")
    run.state = run.state.evolve(usage={**run.state.usage, "cost_usd": before})
    event = run.model_reply(asked(run), ("orders.lookup", {"id": order}))
    run.feed(event.evolve(usage={"input_tokens": Decimal(50)}))
    run.answer({"total": "20.00"})


def prompt(run: Simulation) -> dict[str, Any]:
    """The prompt of the open model call."""
    read: dict[str, Any] = orjson.loads(run.contents[asked(run).request])
    return read


@proves("R-BUDGET-5", part="the cheaper model")
def test_at_eighty_percent_the_remaining_calls_go_to_the_cheaper_model() -> None:
    run = priced(DEAR, CHEAP)
    turn(run, "799.99")
    assert (asked(run).profile, run.said("cost_threshold")) == ("dear", [])
    assert asked(run).reserve["cost_usd"] > 10
    turn(run, "800.00", "A-2")
    assert asked(run).profile == prompt(run)["profile"] == "cheap"
    assert asked(run).reserve["cost_usd"] < 1
    (passed,) = run.said("cost_threshold")
    assert (passed.used, passed.limit, passed.usual, passed.profile) == (800, 1_000, "dear", "cheap")
    before = run.state.usage["cost_usd"]
    run.reply(LOOKUP)
    assert run.state.usage["cost_usd"] - before == Decimal("0.0055")
    assert len(run.said("cost_threshold")) == 1


@proves("R-BUDGET-5", part="the agent is told")
def test_the_agent_is_told_and_only_then() -> None:
    run = priced(DEAR, CHEAP)
    assert "NOTICE" not in prompt(run)["messages"][0]["text"]
    turn(run, "850")
    assert "80 % of this run's cost is spent, US$ 150 is left" in prompt(run)["messages"][0]["text"]


@proves("R-BUDGET-5", part="without a cheaper model")
def test_without_a_cheaper_model_the_agent_is_told_all_the_same() -> None:
    run = priced(DEAR.evolve(cheaper=None))
    turn(run, "850")
    assert "NOTICE" in prompt(run)["messages"][0]["text"]
    (passed,) = run.said("cost_threshold")
    assert (passed.usual, passed.profile, passed.passed) == ("dear", "dear", True)


@proves("R-BUDGET-5", part="at the end the partial result")
def test_at_a_hundred_percent_the_run_ends_with_what_it_has() -> None:
    run = priced(DEAR, CHEAP)
    turn(run, "1000")
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "cost_usd")
    assert run.state.usage["cost_usd"] == 1_000
    assert run.state.result is not None
    assert orjson.loads(run.contents[run.state.result])["output"] == {"f1": {"total": "20.00"}}


def test_an_extension_brings_the_usual_model_back() -> None:
    run = priced(DEAR, CHEAP)
    turn(run, "850")
    run.feed(BudgetExtended(at=run.now, amounts={"cost_usd": Decimal(1_000)}, by="somebody"))
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    assert asked(run).profile == "dear"
    assert [body.passed for body in run.said("cost_threshold")] == [True, False]


@proves("R-BUDGET-15", part="a run under way follows a correction")
def test_a_correction_brings_the_usual_model_back_and_can_end_what_it_shows_to_be_spent() -> None:
    run = priced(DEAR, CHEAP)
    turn(run, "850")
    fixed = CostCorrected(
        at=run.now,
        effect="1" * 32,
        delta=Decimal("-800"),
        price_version="2",
        by="somebody",
        reason="too dear",
    )
    run.feed(fixed)
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    assert asked(run).profile == "dear"
    (said,) = run.said("cost_corrected")
    assert (said.delta, said.price_version, said.by) == (Decimal("-800"), "2", "somebody")
    run.feed(fixed.evolve(delta=Decimal(2_000)))
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "cost_usd")


def short_of_money(*, tokens: int = LEAST_OUTPUT) -> Simulation:
    """A run that has money for its first prompt and for so many tokens more."""
    long = DEAR.evolve(max_output_tokens=200)
    # The prompt names its limit: one of as many characters.
    wide = asked(priced(long, cost=10_000))
    prompt_alone = wide.reserve["input_tokens"] * Decimal("0.01")
    held = pins(TOOLS, BOUNDARY, ("tool-loop",)).evolve(profiles=(long,))
    limits = LIMITS | {"cost_usd": int(wide.reserve["cost_usd"])}
    run = Simulation.of(GRAPH, manifest(GRAPH, held, limits))
    run.state = run.state.evolve(
        limits={**run.state.limits, "cost_usd": prompt_alone + tokens * Decimal("0.01")}
    )
    run.start()
    return run


@proves("R-BUDGET-2", part="a shorter answer where money is short")
def test_where_money_is_short_the_answer_is_shorter_and_the_run_succeeds() -> None:
    run = short_of_money()
    call = asked(run)
    assert (call.max_output_tokens, run.state.left("cost_usd")) == (64, Decimal(0))
    run.reply(text="done")
    assert run.state.outcome is TerminalCode.SUCCESS


def test_a_shorter_answer_than_is_of_use_is_refused_and_not_asked_for() -> None:
    run = short_of_money(tokens=LEAST_OUTPUT - 1)
    assert run.open == {}
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "cost_usd")
    (refused,) = run.said("reservation_refused")
    assert refused.wanted - refused.left == Decimal("0.01")


@proves("R-BUDGET-18", part="an answer cut short for money is no whole one")
@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
@pytest.mark.parametrize("reply", [{"text": "do"}, {"calls": True}, {}])
def test_an_answer_that_money_cut_short_ends_the_run_with_what_it_has(
    finish: str, reply: dict[str, Any]
) -> None:
    run = short_of_money()
    calls = (LOOKUP,) if reply.get("calls") else ()
    run.reply(*calls, text=reply.get("text", ""), finish=finish)
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "cost_usd")
    assert run.state.partial
    assert run.state.result is not None
    document = orjson.loads(run.contents[run.state.result])
    assert (document["completed"], document["output"]) == (False, None)
    assert any("cut short, as no more cost usd was left" in one for one in document["unverified"])
    assert [body.subject for body in run.said("breaker_tripped")] == ["reply cut short"]


def test_what_the_model_itself_ends_at_its_own_limit_stays_an_answer() -> None:
    run = priced(DEAR)
    run.reply(text="done", finish="length")
    assert run.state.outcome is TerminalCode.SUCCESS


@proves("R-BUDGET-5", part="a step's attempts are its own")
def test_the_cheaper_model_leaves_a_step_the_attempts_that_it_had() -> None:
    run = priced(DEAR.evolve(max_retries=2), CHEAP.evolve(max_retries=0))
    turn(run, "850")
    for attempt in (2, 3):
        failed = ModelFailed(at=run.now, effect=asked(run).id, error="server_error", transient=True)
        run.feed(failed)
        (told,) = [body for body in run.said("retry_scheduled") if body.attempt == attempt]
        run.feed(TimerFired(at=run.now), after_ms=told.delay_ms + 1)
        assert asked(run).attempt == attempt
    run.feed(ModelFailed(at=run.now, effect=asked(run).id, error="server_error", transient=True))
    assert len(run.said("retry_scheduled")) == 2
    assert run.open == {}


def test_a_cheaper_model_that_took_too_much_is_not_asked_again() -> None:
    run = priced(DEAR, CHEAP)
    run.state = run.state.evolve(flagged=("cheap",))
    turn(run, "850")
    assert asked(run).profile == "dear"


@proves("R-BUDGET-5", part="a prompt too long for the cheaper model")
def test_a_prompt_that_the_cheaper_model_cannot_hold_stays_with_the_usual_one() -> None:
    run = priced(DEAR, CHEAP.evolve(context_tokens=200))
    turn(run, "850")
    assert run.state.outcome is None
    assert asked(run).profile == prompt(run)["profile"] == "dear"
    assert "80 % of this run's cost is spent" in prompt(run)["messages"][0]["text"]
    (passed,) = run.said("cost_threshold")
    assert (passed.usual, passed.profile, passed.passed) == ("dear", "dear", True)
    run.reply(LOOKUP)
    assert len(run.said("cost_threshold")) == 1


def test_a_prompt_that_neither_model_can_hold_ends_the_run() -> None:
    run = priced(DEAR, CHEAP.evolve(context_tokens=200))
    narrow = tuple(one.evolve(context_tokens=200) for one in run.manifest.pins.profiles)
    run.manifest = run.manifest.evolve(pins=run.manifest.pins.evolve(profiles=narrow))
    turn(run, "850")
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "context_window")

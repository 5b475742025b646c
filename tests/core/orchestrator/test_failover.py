"""Where the model that plays a role cannot be asked, the next in line takes over (R-TOOL-22)."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.run_events import (
    AnyEvent,
    BudgetExtended,
    Headroom,
    ModelFailed,
    Recovered,
    TimerFired,
)
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, LIMITS, TOOLS
from tests.core.orchestrator.simulation import Simulation, manifest, pins
from tests.core.orchestrator.test_economy import LOOKUP, asked, profile, prompt, turn
from tests.proves import proves

OWN = profile("own", "0.01", failover=("other", "third"), cheaper="cheap", max_retries=1)
AT_ONCE = OWN.evolve(max_retries=0)
OTHER = profile("other", "0.02", roles=(), max_retries=1)
THIRD = profile("third", "0.02", roles=(), max_retries=1)
CHEAP = profile("cheap", "0.0001", roles=())


def pinned(*profiles: ModelProfile, cost: int = 1_000) -> Simulation:
    """A started run with these models."""
    held = pins(TOOLS, BOUNDARY, ("tool-loop",)).evolve(profiles=profiles)
    run = Simulation.of(GRAPH, manifest(GRAPH, held, LIMITS | {"cost_usd": cost}))
    run.start()
    return run


def fail(run: Simulation, error: str, *, transient: bool = True, **more: Any) -> None:
    """The open model call brings no reply."""
    run.feed(ModelFailed(at=run.now, effect=asked(run).id, error=error, transient=transient, **more))


def due(run: Simulation) -> None:
    """The time that a retry waits is over."""
    assert run.state.timer is not None
    run.feed(TimerFired(at=run.now), after_ms=int((run.state.timer - run.now).total_seconds() * 1000) + 1)


def moved(run: Simulation) -> list[tuple[str, str, str, int]]:
    """Who took over from whom, why, after how many attempts."""
    return [(one.profile, one.to, one.reason, one.attempts) for one in run.said("model_failed_over")]


@proves("R-TOOL-22", part="failover once the attempts are used up")
@pytest.mark.parametrize("error", ["server_error", "timeout", "unreachable", "rate_limited", "malformed"])
def test_another_provider_takes_over_once_the_attempts_are_used_up_and_the_run_succeeds(error: str) -> None:
    run = pinned(OWN, OTHER)
    fail(run, error)
    assert (run.open, moved(run)) == ({}, [])
    due(run)
    assert (asked(run).profile, asked(run).attempt) == ("own", 2)
    fail(run, error)
    assert (asked(run).profile, asked(run).attempt, prompt(run)["profile"]) == ("other", 1, "other")
    assert moved(run) == [("own", "other", error, 2)]
    run.reply(text="done")
    assert run.state.outcome is TerminalCode.SUCCESS
    assert run.said("breaker_tripped") == []


@proves("R-TOOL-22", part="failover at once where waiting is no use")
@pytest.mark.parametrize("error", ["unauthorized", "no_such_model", "rate_limited", "malformed"])
def test_what_another_attempt_would_not_mend_is_handed_over_at_once(error: str) -> None:
    run = pinned(OWN, OTHER)
    fail(run, error, transient=False)
    assert (asked(run).profile, run.said("retry_scheduled")) == ("other", [])


@proves("R-TOOL-22", part="an open circuit is not waited for")
@proves("R-BUDGET-13", part="failover past an open circuit")
def test_an_open_circuit_hands_over_at_once_and_says_so() -> None:
    run = pinned(OWN, OTHER)
    fail(run, "circuit_open", retry_after_ms=30_000)
    assert (asked(run).profile, run.state.timer) == ("other", None)
    (tripped,) = run.said("breaker_tripped")
    assert (tripped.breaker, tripped.subject) == ("circuit", "own")
    alone = pinned(OWN.evolve(failover=(), provider="openai"))
    fail(alone, "circuit_open", retry_after_ms=5)
    assert alone.open == {}
    assert alone.state.away is not None
    assert (alone.state.away.by, alone.state.timer) == ("circuit", alone.state.away.until)


@proves("R-TOOL-22", part="nobody takes over what every provider would refuse")
@pytest.mark.parametrize("error", ["rejected", "refused_by_wall", "crashed", "script_mismatch"])
def test_a_request_that_is_at_fault_itself_is_not_shown_to_another_provider(error: str) -> None:
    run = pinned(OWN, OTHER)
    fail(run, error, transient=False)
    assert (run.open, moved(run)) == ({}, [])
    assert (run.state.outcome, run.state.reason) == (TerminalCode.UNAVAILABLE_DEP, error)


@proves("R-TOOL-22", part="the line is finite")
def test_the_line_is_gone_through_once_and_then_the_run_ends_with_its_reason() -> None:
    run = pinned(OWN, OTHER, THIRD)
    for wanted in ("own", "other", "third"):
        assert asked(run).profile == wanted
        fail(run, "server_error")
        due(run)
        fail(run, "server_error")
    assert [to for _, to, _, _ in moved(run)] == ["other", "third"]
    assert (run.state.outcome, run.state.reason) == (TerminalCode.UNAVAILABLE_DEP, "server_error")
    calls = [effect.profile for effect in run.asked if isinstance(effect, CallModel)]
    assert calls == ["own", "own", "other", "other", "third", "third"]


@proves("R-TOOL-22", part="who took over stays")
def test_who_took_over_stays_for_the_steps_after_it_with_attempts_of_its_own() -> None:
    run = pinned(OWN, OTHER)
    fail(run, "unauthorized", transient=False)
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    assert asked(run).profile == "other"
    fail(run, "timeout")
    due(run)
    assert (asked(run).profile, asked(run).attempt) == ("other", 2)
    assert len(moved(run)) == 1


@proves("R-TOOL-22", part="each call under a reservation of its own")
@proves("B5", part="a call handed over is paid for")
def test_each_provider_is_reserved_and_charged_at_its_own_price() -> None:
    run = pinned(OWN, OTHER)
    first = asked(run)
    fail(run, "unauthorized", transient=False)
    second = asked(run)
    assert first.id != second.id
    assert second.reserve["cost_usd"] > first.reserve["cost_usd"] * Decimal("1.9")
    assert list(run.state.pending) == [second.id]
    run.feed(run.model_reply(second, LOOKUP).evolve(usage={"input_tokens": Decimal(50)}))
    assert run.state.usage["cost_usd"] == Decimal(50) * Decimal("0.02")


@proves("R-TOOL-22", part="failover within the budget")
def test_who_is_too_dear_for_what_is_left_is_not_asked() -> None:
    dear = OTHER.evolve(price=profile("other", "10").price)
    run = pinned(OWN, dear, cost=50)
    fail(run, "unauthorized", transient=False)
    assert (run.open, moved(run)) == ({}, [])
    assert (run.state.outcome, run.state.reason) == (TerminalCode.UNAVAILABLE_DEP, "unauthorized")


@proves("R-TOOL-22", part="a cheaper model fails")
def test_where_the_cheaper_model_fails_the_one_it_plays_for_is_asked_and_then_the_line() -> None:
    run = pinned(OWN.evolve(failover=("cheap", "other")), OTHER, CHEAP)
    turn(run, "850")
    for wanted in ("cheap", "own", "other"):
        assert asked(run).profile == wanted
        fail(run, "unauthorized", transient=False)
    assert [(one, to) for one, to, _, _ in moved(run)] == [("cheap", "own"), ("own", "other")]
    assert run.state.outcome is TerminalCode.UNAVAILABLE_DEP


def outgrown() -> Simulation:
    """Beyond the threshold with a prompt that is too long for the cheaper model."""
    run = pinned(AT_ONCE, OTHER, CHEAP.evolve(context_tokens=200))
    turn(run, "850")
    return run


def passing() -> Simulation:
    """A call that will pass the threshold, whatever comes of it: what it has reserved is spent."""
    run = pinned(AT_ONCE, OTHER, CHEAP)
    run.state = run.state.evolve(usage={**run.state.usage, "cost_usd": Decimal("799.999")})
    return run


@proves("R-TOOL-22", part="who failed is who was asked, whoever would be asked now")
@proves("R-BUDGET-13", part="an open circuit is that of whoever was asked")
@pytest.mark.parametrize(
    ("spent", "error"), [(outgrown, "server_error"), (outgrown, "circuit_open"), (passing, "server_error")]
)
def test_who_stands_down_is_who_was_asked(spent: Callable[[], Simulation], error: str) -> None:
    run = spent()
    assert asked(run).profile == "own"
    fail(run, error)
    assert moved(run) == [("own", "other", error, 1)]
    assert asked(run).profile == "other"
    assert run.state.stood_down == ("own",)
    assert [one.subject for one in run.said("breaker_tripped")] == ["own"] * (error == "circuit_open")


def test_a_cheaper_model_that_fails_once_money_is_there_again_stands_down_for_the_usual_one() -> None:
    run = pinned(OWN, OTHER, CHEAP)
    turn(run, "850")
    assert asked(run).profile == "cheap"
    run.feed(BudgetExtended(at=run.now, amounts={"cost_usd": Decimal(1_000)}, by="somebody"))
    fail(run, "unauthorized", transient=False)
    assert (asked(run).profile, moved(run)) == ("own", [("cheap", "own", "unauthorized", 1)])


def test_a_cheaper_model_that_stood_down_is_not_asked_again() -> None:
    run = pinned(OWN, OTHER.evolve(cheaper="own"), THIRD)
    fail(run, "unauthorized", transient=False)
    turn(run, "850")
    assert asked(run).profile == "other"


@proves("R-TOOL-22", part="who cannot hold the prompt is passed over")
def test_an_heir_that_cannot_hold_the_prompt_or_be_paid_is_passed_over() -> None:
    run = pinned(OWN, OTHER.evolve(context_tokens=200), THIRD)
    fail(run, "unauthorized", transient=False)
    assert (asked(run).profile, moved(run)) == ("third", [("own", "third", "unauthorized", 1)])
    dear = pinned(OWN, OTHER.evolve(price=profile("other", "10").price), THIRD, cost=50)
    fail(dear, "unauthorized", transient=False)
    assert asked(dear).profile == "third"


def test_who_could_not_be_pinned_or_took_too_much_is_passed_over() -> None:
    run = pinned(OWN.evolve(failover=("unpriced", "other", "third")), OTHER, THIRD)
    run.state = run.state.evolve(flagged=("other",))
    fail(run, "unauthorized", transient=False)
    assert asked(run).profile == "third"


def test_a_call_lost_with_its_worker_is_asked_of_the_same_model() -> None:
    run = pinned(OWN, OTHER)
    run.feed(Recovered(at=run.now, effect=asked(run).id, resolution="lost"))
    assert (asked(run).profile, moved(run)) == ("own", [])


def silent(run: Simulation) -> AnyEvent:
    """A reply without a word."""
    return run.model_reply(asked(run))


@proves("R-LOOP-9", part="a reply without a word is recorded whenever it comes")
def test_what_is_said_of_a_call_to_be_made_again_holds_where_the_slice_is_over() -> None:
    run = pinned(OWN, OTHER)
    over = Headroom(slice_over=True)
    run.feed(silent(run), over)
    assert (run.open, run.state.held) == ({}, True)
    assert [one.shape for one in run.said("model_replied")] == ["empty"]
    assert run.state.counters.empty == 1
    run.feed(TimerFired(at=run.now))
    run.feed(Recovered(at=run.now, effect=asked(run).id, resolution="lost"), over)
    assert run.said("call_recovered")
    run.feed(TimerFired(at=run.now))
    run.feed(ModelFailed(at=run.now, effect=asked(run).id, error="unauthorized", transient=False), over)
    assert [one.to for one in run.said("model_failed_over")] == ["other"]
    run.feed(TimerFired(at=run.now))
    assert asked(run).profile == "other"
    run.reply(text="done")
    assert run.state.outcome is TerminalCode.SUCCESS

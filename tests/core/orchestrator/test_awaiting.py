"""A model that is away is waited for: by timer, behind its circuit, in line (R-TOOL-22, R-BUDGET-13)."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.core.common.goal import Goal, Mode
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.common.run_status import Status, TerminalCode
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.graph import MODEL_PATIENCE_SECONDS
from orchestrator.core.domain.run_events import (
    CancelAsked,
    Headroom,
    ModelFailed,
    Paused,
    Recovered,
    Resumed,
    StopAsked,
    TimerFired,
)
from orchestrator.core.domain.run_state import ModelWait
from orchestrator.core.engine.derived_status import wake_at
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, LIMITS, TOOLS
from tests.core.orchestrator.simulation import START, Simulation, manifest, pins
from tests.core.orchestrator.test_economy import profile
from tests.proves import proves

LOCAL = profile("local", "0.0000001", max_retries=2).evolve(provider="openai")
OTHER = profile("other", "0.0000001", roles=()).evolve(provider="openai")
CALLED_UP = Headroom(called_up=True)
GOAL = Goal(objective="how much is 2 + 2?")


def started(
    *profiles: ModelProfile,
    goal: Goal = GOAL,
    patience: int = MODEL_PATIENCE_SECONDS,
) -> Simulation:
    """A started run with these models, that has asked the first."""
    drawn = GRAPH.spec.model_dump(mode="json", by_alias=True) | {"model_patience_seconds": patience}
    graph = GRAPH if patience == MODEL_PATIENCE_SECONDS else compile_graph(drawn)
    held = pins(TOOLS, BOUNDARY, ("tool-loop",)).evolve(profiles=profiles or (LOCAL,))
    limits = LIMITS | {"wall_clock_seconds": 60, "input_tokens": 2_000_000, "total_tokens": 2_000_000}
    run = Simulation.of(graph, manifest(graph, held, limits, goal))
    run.start()
    return run


def asked(run: Simulation) -> CallModel:
    """The open model call."""
    return next(effect for effect in run.open.values() if isinstance(effect, CallModel))


def fail(run: Simulation, error: str, *, transient: bool = True, **more: Any) -> None:
    """The open model call brings no reply."""
    run.feed(ModelFailed(at=run.now, effect=asked(run).id, error=error, transient=transient, **more))


def due(run: Simulation) -> None:
    """The time that the run waits for has come."""
    assert run.state.timer is not None
    run.feed(TimerFired(at=run.now), after_ms=int((run.state.timer - run.now).total_seconds() * 1000) + 1)


def outage(run: Simulation, error: str = "unreachable") -> ModelWait:
    """Every attempt fails; how the run then waits."""
    for _ in range(2):
        fail(run, error)
        due(run)
    fail(run, error)
    assert run.state.away is not None
    return run.state.away


@proves("R-TOOL-22", part="an outage is waited out")
@pytest.mark.parametrize(
    "error", ["unreachable", "timeout", "server_error", "unavailable", "cut_off", "rate_limited"]
)
def test_a_model_that_stays_away_is_waited_for_and_the_run_goes_on_by_itself(error: str) -> None:
    run = started()
    away = outage(run, error)
    assert (run.open, run.state.outcome, run.state.status) == ({}, None, Status.IN_PROGRESS)
    assert (away.profile, away.cause, away.by, away.since) == ("local", error, "timer", run.now)
    assert away.until == run.now + timedelta(seconds=MODEL_PATIENCE_SECONDS)
    (said,) = run.said("model_awaited")
    assert (said.profile, said.cause, said.since) == ("local", error, away.since.isoformat())
    due(run)
    run.reply(text="done")
    assert (run.state.outcome, run.state.away) == (TerminalCode.SUCCESS, None)
    assert run.said("breaker_tripped") == []


@proves("R-TOOL-22", part="an outage is outside the working time")
@proves("R-BUDGET-1", part="the clock stands while a provider is away")
def test_the_clock_stands_while_the_model_is_away_and_goes_on_when_it_answers() -> None:
    run = started()
    since = outage(run).since
    used = run.state.clock_ms
    for _ in range(8):
        due(run)
        fail(run, "unreachable")
    assert run.now - since > timedelta(seconds=60)
    assert (run.state.clock_ms, run.state.clock_since, run.state.away.since) == (used, None, since)  # type: ignore[union-attr]
    due(run)
    run.reply(("orders.lookup", {"id": "A-1"}))
    assert (run.state.clock_ms, run.state.clock_since) == (used, run.now)
    assert run.state.usage["wall_clock_seconds"] < 10


@proves("R-TOOL-22", part="the patience ends")
def test_once_the_patience_is_over_the_run_ends_with_what_was_wrong() -> None:
    run = started()
    until = outage(run).until
    for _ in range(100):
        if run.state.outcome is not None:
            break
        due(run)
        if run.open:
            fail(run, "unreachable")
    assert (run.state.outcome, run.state.reason, run.state.away) == (
        TerminalCode.UNAVAILABLE_DEP, "unreachable", None,
    )  # fmt: skip
    assert until is not None
    assert timedelta() <= run.now - until < timedelta(seconds=1)
    assert [(one.breaker, one.reason) for one in run.said("breaker_tripped")] == [
        ("retry_storm", "unreachable")
    ]
    assert run.state.usage.get("model_turns", 0) == 0


@proves("R-TOOL-22", part="patience is the workflow's")
@pytest.mark.parametrize(
    ("goal", "patience"), [(GOAL, 0), (GOAL.evolve(mode=Mode.INTERACTIVE), MODEL_PATIENCE_SECONDS)]
)
def test_without_patience_the_run_ends_once_its_attempts_are_used_up(goal: Goal, patience: int) -> None:
    run = started(goal=goal, patience=patience)
    for _ in range(2):
        fail(run, "unreachable")
        due(run)
    fail(run, "unreachable")
    assert (run.state.outcome, run.state.reason) == (TerminalCode.UNAVAILABLE_DEP, "unreachable")
    shut = started(goal=goal, patience=patience)
    fail(shut, "circuit_open", retry_after_ms=30_000)
    assert (shut.state.outcome, shut.state.reason) == (TerminalCode.UNAVAILABLE_DEP, "circuit_open")
    assert [one.breaker for one in shut.said("breaker_tripped")] == ["circuit"]


def test_a_patience_of_the_workflows_own_is_part_of_its_digest_and_the_default_is_not() -> None:
    run, usual = started(patience=60), started()
    away = outage(run)
    assert away.until == away.since + timedelta(seconds=60)
    assert run.graph.digest != usual.graph.digest == GRAPH.digest


@proves("R-TOOL-22", part="within its deadline")
def test_the_deadline_goes_on_while_the_model_is_away() -> None:
    deadline = START + timedelta(minutes=3)
    run = started(goal=GOAL.evolve(deadline=deadline))
    outage(run)
    fired = 0
    while run.state.outcome is None and fired < 50:
        fired += 1
        wake = wake_at(run.state, deadline)
        assert wake is not None
        run.feed(TimerFired(at=run.now), after_ms=int((wake - run.now).total_seconds() * 1000) + 1)
        if run.open:
            fail(run, "unreachable")
    assert (run.state.outcome, run.state.reason) == (TerminalCode.TIMEOUT, "deadline_passed")
    assert run.now < deadline + timedelta(seconds=1)


@proves("R-TOOL-22", part="a refusal of our own circuit is neither a try nor a turn")
def test_what_our_own_circuit_turns_away_is_no_attempt_no_turn_and_costs_nothing() -> None:
    run = started()
    first = asked(run).attempt
    for _ in range(20):
        fail(run, "circuit_open", retry_after_ms=30_000)
        away = run.state.away
        assert away is not None
        assert (away.by, run.state.timer, run.state.counters.model_attempts) == ("circuit", away.until, 0)
        run.feed(TimerFired(at=run.now), CALLED_UP)
        assert asked(run).attempt == first
    assert {name: used for name, used in run.state.usage.items() if name != "wall_clock_seconds"} == {}
    run.reply(text="done")
    assert (run.state.outcome, run.state.usage["model_turns"]) == (TerminalCode.SUCCESS, Decimal(1))


@proves("R-TOOL-22", part="what nobody took is no turn")
@pytest.mark.parametrize(
    ("error", "turns"),
    [("unreachable", 0), ("unavailable", 0), ("rate_limited", 0), ("server_error", 1), ("cut_off", 1)],
)
def test_a_call_that_nobody_took_is_charged_nothing_and_one_that_was_taken_as_reserved(
    error: str, turns: int
) -> None:
    run = started()
    reserve = asked(run).reserve
    fail(run, error)
    used = {name: amount for name, amount in run.state.usage.items() if name != "wall_clock_seconds"}
    assert used == ({name: amount for name, amount in reserve.items() if amount} if turns else {})


@proves("R-BUDGET-13", part="a waiting run leaves no trace until it is called up")
def test_behind_an_open_circuit_nothing_is_recorded_until_the_run_is_called_up() -> None:
    run = started()
    fail(run, "circuit_open", retry_after_ms=30_000)
    before = run.state
    for _ in range(50):
        assert run.feed(TimerFired(at=run.now), after_ms=2_000).transitions == ()
    assert run.state == before
    run.feed(TimerFired(at=run.now), CALLED_UP)
    assert asked(run).profile == "local"


@proves(
    "R-BUDGET-13", part="the run whose probe failed may be called up for the next one before its own time"
)
def test_a_run_that_waits_by_its_own_timer_goes_on_before_it_only_if_called_up() -> None:
    run = started()
    outage(run)
    assert run.feed(TimerFired(at=run.now)).transitions == ()
    run.feed(TimerFired(at=run.now), CALLED_UP)
    assert asked(run).profile == "local"


@proves("R-TOOL-22", part="failover stays immediate")
def test_with_somebody_left_nothing_is_waited_for() -> None:
    run = started(LOCAL.evolve(failover=("other",)), OTHER)
    for _ in range(2):
        fail(run, "unreachable")
        due(run)
    fail(run, "unreachable")
    assert (asked(run).profile, run.state.away) == ("other", None)
    shut = started(LOCAL.evolve(failover=("other",)), OTHER)
    fail(shut, "circuit_open", retry_after_ms=30_000)
    assert (asked(shut).profile, asked(shut).attempt, shut.state.away) == ("other", 1, None)


@proves("R-TOOL-22", part="what does not pass is not waited for")
@pytest.mark.parametrize("error", ["unauthorized", "no_such_model", "rejected", "no_key"])
def test_what_would_be_no_better_in_a_while_ends_the_run_also_after_an_outage(error: str) -> None:
    run = started()
    outage(run)
    due(run)
    fail(run, error, transient=False)
    assert (run.state.outcome, run.state.reason) == (TerminalCode.UNAVAILABLE_DEP, error)


def test_a_malformed_reply_is_retried_a_bounded_number_of_times_and_ends_the_run() -> None:
    run = started()
    for _ in range(2):
        fail(run, "malformed")
        due(run)
    fail(run, "malformed")
    assert (run.state.outcome, run.state.reason) == (TerminalCode.UNAVAILABLE_DEP, "malformed")


@proves("R-TOOL-22", part="people's words act at once")
def test_cancel_and_stop_end_a_waiting_run_at_once_and_a_pause_keeps_its_patience() -> None:
    cancelled, stopped, paused = started(), started(), started()
    for run in (cancelled, stopped, paused):
        fail(run, "circuit_open", retry_after_ms=30_000)
    cancelled.feed(CancelAsked(at=cancelled.now, by="x", reason="no"))
    assert (cancelled.state.outcome, cancelled.state.away) == (TerminalCode.USER_CANCEL, None)
    stopped.feed(StopAsked(at=stopped.now, scope="tenant", target="", reason="no"))
    assert stopped.state.outcome is TerminalCode.USER_CANCEL
    paused.feed(Paused(at=paused.now, by="x", reason="lunch"))
    assert paused.state.status is Status.PAUSED
    due(paused)
    assert (paused.state.outcome, paused.state.away, paused.state.timer) == (None, None, None)
    paused.feed(Resumed(at=paused.now, by="x"))
    assert asked(paused).profile == "local"


@proves("R-TOOL-22", part="a fair queue above the bound")
def test_a_run_in_line_waits_without_attempt_or_working_time_until_it_is_called_up() -> None:
    run = started()
    fail(run, "model_busy")
    away = run.state.away
    assert away is not None
    assert (away.by, away.until, run.state.clock_since) == ("line", None, None)
    assert run.feed(TimerFired(at=run.now), after_ms=100_000).transitions == ()
    run.feed(TimerFired(at=run.now), CALLED_UP)
    assert (asked(run).attempt, run.state.away, run.state.clock_since) == (1, None, run.now)
    run.reply(text="done")
    assert run.state.outcome is TerminalCode.SUCCESS


def test_who_waits_in_front_of_a_screen_waits_in_line_on_the_clock() -> None:
    run = started(goal=GOAL.evolve(mode=Mode.INTERACTIVE))
    fail(run, "model_busy")
    assert run.state.clock_since is not None
    due(run)
    assert (run.state.outcome, run.state.reason) == (TerminalCode.TIMEOUT, "wall_clock")


def test_a_line_does_not_end_the_wait_for_a_model_that_was_away() -> None:
    run = started()
    since = outage(run).since
    due(run)
    fail(run, "model_busy")
    assert run.state.away is not None
    assert (run.state.away.by, run.state.away.since) == ("line", since)


def test_a_worker_that_dies_with_the_probe_leaves_the_run_waiting() -> None:
    run = started()
    since = outage(run).since
    due(run)
    run.feed(Recovered(at=run.now, effect=asked(run).id, resolution="lost"))
    assert run.state.away is not None
    assert (asked(run).profile, run.state.away.since) == ("local", since)


def test_a_scenario_that_says_a_model_is_away_is_not_waited_for() -> None:
    run = started(LOCAL.evolve(provider="scripted"))
    for _ in range(2):
        fail(run, "unreachable")
        due(run)
    fail(run, "unreachable")
    assert run.state.outcome is TerminalCode.UNAVAILABLE_DEP

"""A run that was cancelled or stopped ends for that reason, and asks nobody for what it will not do."""

from collections.abc import Callable

import pytest

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import AskApproval
from orchestrator.core.domain.run_events import (
    AnyEvent,
    CancelAsked,
    GateExpired,
    ModelFailed,
    Recovered,
    StopAsked,
)
from tests.core.orchestrator import deeds
from tests.core.orchestrator.loops import loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves


def cancelled(run: Simulation) -> AnyEvent:
    """An operator's wish."""
    return CancelAsked(at=run.now, by="somebody", reason="Enough.")


def stopped(run: Simulation) -> AnyEvent:
    """An emergency stop."""
    return StopAsked(at=run.now, scope="tenant", target="", reason="Look into it.")


@proves("R-SEC-9", part="a doubt that nobody answers does not hide the stop")
@pytest.mark.parametrize("halted", [cancelled, stopped])
def test_a_doubt_that_nobody_answers_is_not_why_a_halted_run_ends(
    halted: Callable[[Simulation], AnyEvent],
) -> None:
    run = deeds.run_with()
    run.reply(("orders.note", {"n": 1}))
    (effect,) = run.open.values()
    run.feed(halted(run))
    run.feed(Recovered(at=run.now, effect=effect.id, resolution="in_doubt"))
    (asked,) = run.requests
    run.feed(GateExpired(at=run.now, request=str(asked.request)))
    assert run.state.outcome is TerminalCode.USER_CANCEL
    assert run.state.reason == ("cancelled" if halted is cancelled else "emergency_stop_tenant")
    assert [said.request for said in run.said("approval_expired")] == [str(asked.request)]


@proves("R-SEC-9", part="no backoff stands between a stop and the end")
@pytest.mark.parametrize("transient", [True, False])
@pytest.mark.parametrize("halted", [cancelled, stopped])
def test_a_halted_run_whose_model_call_fails_ends_at_once_and_for_that_reason(
    halted: Callable[[Simulation], AnyEvent], transient: bool
) -> None:
    run = loop()
    (effect,) = run.open.values()
    run.feed(halted(run))
    run.feed(ModelFailed(at=run.now, effect=effect.id, error="server_error", transient=transient))
    assert (run.state.outcome, run.state.timer) == (TerminalCode.USER_CANCEL, None)
    assert [said.error for said in run.said("model_failed")] == ["server_error"]
    assert run.said("retry_scheduled") == []


def test_a_doubt_that_nobody_answers_ends_a_run_that_nobody_halted() -> None:
    run = deeds.run_with()
    run.reply(("orders.note", {"n": 1}))
    (effect,) = run.open.values()
    run.feed(Recovered(at=run.now, effect=effect.id, resolution="in_doubt"))
    (asked,) = run.requests
    run.feed(GateExpired(at=run.now, request=str(asked.request)))
    assert (run.state.outcome, run.state.reason) == (TerminalCode.TIMEOUT, "reconciliation_expired")


@proves("R-APPR-2", part="withdrawn when the run has moved on")
def test_what_a_run_asked_for_is_withdrawn_when_it_takes_back_what_it_did() -> None:
    ask = deeds.BOUNDARY.evolve(compensation="ask")
    run = deeds.run_with("orders.place", boundary=ask)
    run.reply(("orders.ship", {"n": 2}))
    (gate,) = run.requests
    run.feed(cancelled(run))
    assert [said.request for said in run.said("approval_withdrawn")] == [str(gate.request)]
    # The run is not over: it asks whether the order may be cancelled.
    asked = run.requests[-1]
    assert isinstance(asked, AskApproval)
    assert (run.state.outcome, asked.tool) == (None, "orders.cancel")
    assert list(run.state.gates) == [str(asked.request)]

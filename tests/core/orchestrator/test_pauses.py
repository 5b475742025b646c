"""A paused run rests: nothing is called, and no time that comes makes it write (R-SESS-9)."""

from collections.abc import Callable

import pytest

from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.run_events import ModelFailed, Paused, Resumed, TimerFired
from orchestrator.core.engine.derived_status import wake_at
from tests.core.orchestrator.loops import loop
from tests.core.orchestrator.simulation import Simulation
from tests.core.orchestrator.test_conflicts import BUSY, asked, sent
from tests.proves import proves


def pause(run: Simulation) -> None:
    """An operator's wish."""
    run.feed(Paused(at=run.now, by="somebody", reason="Wait."))


def resume(run: Simulation) -> None:
    """And its end."""
    run.feed(Resumed(at=run.now, by="somebody"))


def waiting_for_another() -> Simulation:
    """A run whose call waits for what another run writes to."""
    return asked("A-1", BUSY)


def backing_off() -> Simulation:
    """A run that will ask its model again in a while."""
    run = loop(transitions=30)
    (effect,) = run.open.values()
    run.feed(ModelFailed(at=run.now, effect=effect.id, error="server_error", transient=True))
    return run


@proves("R-SESS-9", part="a paused run calls nothing when a wait is over, and rests")
@pytest.mark.parametrize("begun", [waiting_for_another, backing_off])
def test_a_wait_that_is_over_moves_no_paused_run(begun: Callable[[], Simulation]) -> None:
    run = begun()
    assert run.state.timer is not None
    pause(run)
    before = len(run.asked)
    run.feed(TimerFired(at=run.now), after_ms=30_000)
    version = run.state.version
    for _ in range(40):
        run.feed(TimerFired(at=run.now), after_ms=1_000)
    assert (len(run.asked), run.state.version, run.state.status) == (before, version, "paused")
    assert (run.state.held, wake_at(run.state, None), run.state.outcome) == (True, None, None)


def test_a_resumed_run_goes_on_where_its_wait_was() -> None:
    run = waiting_for_another()
    pause(run)
    run.feed(TimerFired(at=run.now), after_ms=2_000)
    resume(run)
    assert [call.conflicts for call in sent(run)] == [("order:A-1",)]
    again = backing_off()
    pause(again)
    again.feed(TimerFired(at=again.now), after_ms=30_000)
    resume(again)
    assert [call.attempt for call in again.asked if isinstance(call, CallModel)] == [1, 2]

"""A credential that has run out pauses the run; once it is renewed the call is made (R-TOOL-13)."""

import pytest

from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import Resumed, ToolFailed
from tests.core.orchestrator.loops import loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves


def turned_away(error: str, *, before: bool) -> Simulation:
    """A run whose look-up is turned away, for the first time or after it was let in."""
    run = loop()
    for number in range(before + 1):
        run.reply(("orders.lookup", {"id": f"A-{number}"}))
        if number < before:
            run.answer({"total": "20.00"})
    (effect,) = run.open.values()
    run.feed(ToolFailed(at=run.now, effect=effect.id, error=error, sent=True, transient=False))
    return run


@proves("R-TOOL-13", part="turned away after success")
@pytest.mark.parametrize(("error", "before"), [("unauthorized", True), ("credential_expired", False)])
def test_the_run_pauses_with_the_reason_and_then_makes_the_call(error: str, before: bool) -> None:
    run = turned_away(error, before=before)
    assert run.state.status == "paused"
    assert run.said("run_paused")[-1].reason == f"{error}:orders.lookup"
    calls = sum(isinstance(effect, CallTool) for effect in run.asked)
    run.feed(Resumed(at=run.now, by="x"))
    assert sum(isinstance(effect, CallTool) for effect in run.asked) == calls + 1
    run.answer({"total": "20.00"})
    assert run.state.failures == ()


def test_one_that_was_never_let_in_has_failed() -> None:
    run = turned_away("unauthorized", before=False)
    assert (run.state.status, [f.error for f in run.state.failures]) == ("in_progress", ["unauthorized"])

"""A call that is made once more is judged once more by what may have changed since it was found eligible."""

import pytest

from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import Headroom, Recovered, Resumed, TimerFired, ToolFailed
from orchestrator.core.domain.tool_spec import Risk
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.core.orchestrator.test_conflicts import BUSY, POST, sent
from tests.proves import proves

NOTE = POST.evolve(honours_keys=True, max_retries=2)


def called() -> tuple[Simulation, CallTool]:
    """A run that has asked for one call, and the call."""
    tools = TOOLS | {NOTE.name: NOTE}
    run = loop(boundary=BOUNDARY, tools=tools, graph_tools=tuple(tools), side_effects=9)
    run.reply((NOTE.name, {"order": "A-1"}))
    (effect,) = run.open.values()
    assert isinstance(effect, CallTool)
    return run, effect


@proves("G10", part="a new attempt waits for another run, too")
def test_a_new_attempt_waits_for_what_another_run_writes_to() -> None:
    run, effect = called()
    run.feed(ToolFailed(at=run.now, effect=effect.id, error="circuit_open", sent=False, transient=True))
    run.feed(TimerFired(at=run.now), BUSY, after_ms=30_000)
    assert len(sent(run)) == 1
    assert [said.key for said in run.said("conflict_waited")] == ["order:A-1"]
    run.feed(TimerFired(at=run.now), after_ms=1_000)
    assert [call.attempt for call in sent(run)] == [1, 2]
    assert len({call.key for call in sent(run)}) == 1


CHANGED = [
    (Headroom(missing_scopes=("submit",)), "principal_scopes", "denied"),
    (Headroom(stopped_tools=(NOTE.name,)), "emergency_stop", "denied"),
    (Headroom(raised_tools={NOTE.name: Risk.DESTRUCTIVE}), "no_grant", "needs_approval"),
]


@proves("R-TOOL-5", part="judged again before each further attempt")
@proves("R-TOOL-4", part="a class raised between two attempts")
@pytest.mark.parametrize(("room", "rule", "verdict"), CHANGED)
@pytest.mark.parametrize("unsent", ["renewed", "abandoned"])
def test_a_new_attempt_heeds_what_has_changed_since(
    room: Headroom, rule: str, verdict: str, unsent: str
) -> None:
    run, effect = called()
    if unsent == "renewed":
        expired = ToolFailed(
            at=run.now, effect=effect.id, error="credential_expired", sent=False, transient=False
        )
        run.feed(expired)
        assert run.state.status == "paused"
        run.feed(Resumed(at=run.now, by="somebody"), room)
    else:
        run.feed(Recovered(at=run.now, effect=effect.id, resolution="abandoned"))
        run.feed(TimerFired(at=run.now), room, after_ms=30_000)
    assert len(sent(run)) == 1
    assert [said.rule for said in run.said("call_checked") if said.decision != "allow"][-1] == rule
    assert [(failure.tool, failure.error) for failure in run.state.failures] == [(NOTE.name, verdict)]


def test_a_new_attempt_of_what_nothing_speaks_against_is_made_without_a_word() -> None:
    run, effect = called()
    checked = len(run.said("call_checked"))
    run.feed(Recovered(at=run.now, effect=effect.id, resolution="abandoned"))
    run.feed(TimerFired(at=run.now), after_ms=30_000)
    assert ([call.attempt for call in sent(run)], len(run.said("call_checked"))) == ([1, 2], checked)

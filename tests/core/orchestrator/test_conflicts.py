"""Calls that write the same thing, by the keys that their tools declare (G10)."""

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import Headroom, TimerFired
from orchestrator.core.domain.tool_spec import Reversibility, Risk
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves

POST = TOOLS["ledger.post"].evolve(
    name="orders.note", risk=Risk.LOCAL_WRITE, reversibility=Reversibility.REVERSIBLE,
    conflict_keys=("order:{order}", "files"),
)  # fmt: skip
BUSY = Headroom(busy=("order:A-1",))


def asked(order: str, room: Headroom | None = None) -> Simulation:
    tools = TOOLS | {POST.name: POST}
    run = loop(boundary=BOUNDARY, tools=tools, graph_tools=tuple(tools), side_effects=9)
    effect = next(e for e in run.open.values() if isinstance(e, CallModel))
    run.feed(run.model_reply(effect, (POST.name, {"order": order})), room)
    return run


def sent(run: Simulation) -> list[CallTool]:
    return [e for e in run.asked if isinstance(e, CallTool)]


@proves("G10", part="the keys of a call")
def test_a_call_claims_what_its_tool_says_with_its_own_arguments() -> None:
    (call,) = sent(asked("A-1"))
    assert call.conflicts == ("order:A-1",)
    (long,) = sent(asked("A" * 500))
    assert len(long.conflicts[0]) <= 200


@proves("G10", part="serialized")
def test_a_call_whose_thing_is_taken_waits_and_is_then_made() -> None:
    run = asked("A-1", BUSY)
    assert (sent(run), run.state.status) == ([], "in_progress")
    assert [said.key for said in run.said("conflict_waited")] == ["order:A-1"]
    run.feed(TimerFired(at=run.now), BUSY, after_ms=1_000)
    assert sent(run) == []
    run.feed(TimerFired(at=run.now), after_ms=1_000)
    assert len(sent(run)) == 1


def test_another_thing_that_is_taken_holds_nothing_up() -> None:
    assert len(sent(asked("A-2", BUSY))) == 1


def test_waiting_is_bounded_by_the_runs_own_clock() -> None:
    run = asked("A-1", BUSY)
    run.feed(TimerFired(at=run.now), BUSY, after_ms=61_000)
    assert (run.state.outcome, sent(run)) == (TerminalCode.TIMEOUT, [])

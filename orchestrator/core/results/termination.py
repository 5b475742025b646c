"""The one end of every run: its code, its class, its artifact (R-GRAPH-15)."""

from orchestrator.core.common.run_status import ENDINGS, TerminalCode, final_status
from orchestrator.core.domain.effects import Finish
from orchestrator.core.domain.run_state import Halting, State
from orchestrator.core.results.run_output import report_body
from orchestrator.core.workflow.node_protocol import Step, View, say
from traces.core.events.phases import Phase
from traces.core.events.trace_events import PhaseSkipped, RunFinished
from traces.core.integrity.chain import Said


def ended(view: View, code: TerminalCode) -> Step:
    """End the run with a terminal code; what it took back, or could not, stands in its report."""
    state = view.state
    reason = (state.reason or ENDINGS[code].meaning)[:500]
    whole = None if state.partial or unwound(state) else state.result
    result = whole or view.desk.put(report_body(view, code, state.reason or ENDINGS[code].meaning))
    step = _finished(view, code, reason, result, view.effect_id(99, 0))
    skipped = PhaseSkipped(reason="this workflow writes no memory")
    closed = step.state.evolve(queue=(), batch=())
    return Step(state=closed, said=(say(Phase.MEMORY_WRITE, skipped), *step.said), effects=step.effects)


def forced(view: View, code: TerminalCode, halting: Halting) -> Step:
    """End the run where it stands: the graph's own way out was itself interrupted."""
    result = view.state.result
    if unwound(view.state):
        result = view.desk.put(report_body(view, code, halting.reason))
    return _finished(view, code, halting.reason, result, view.effect_id(0, 0))


def unwound(state: State) -> bool:
    """Whether anything was taken back, or left to people."""
    return any(deed.standing in ("undone", "left") for deed in state.deeds.values())


def _finished(view: View, code: TerminalCode, reason: str, result: str | None, effect: str) -> Step:
    status = final_status(code, expired=view.state.expired)
    finish = Finish(id=effect, code=code, status=status, reason=reason, result=result)
    body = RunFinished(
        terminal_code=code.value,
        terminal_class=ENDINGS[code].terminal_class.value,
        status=status.value,
        reason=reason,
        result=result,
    )
    state = view.state.evolve(
        outcome=code, status=status, result=result, reason=reason, gates={}, timer=None, held=False, away=None
    )
    said: tuple[Said, ...] = (say(Phase.TRACE_LOGGING, body),)
    return Step(state=state, said=said, effects=(finish,))

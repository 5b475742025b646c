"""The one end of every run: its code, its class, its artifact (R-GRAPH-15)."""

from orchestrator.core.common.run_status import ENDINGS, TerminalCode, final_status
from orchestrator.core.domain.effects import Finish
from orchestrator.core.domain.run_state import PendingInterrupt, RunState
from orchestrator.core.results.run_output import report_body
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import PhaseSkipped, RunFinished
from traces.core.integrity.chain import TraceEntry


def end_run(view: NodeContext, code: TerminalCode) -> NodeResult:
    """End the run with a terminal code; its report lists changes that were undone or could not be undone."""
    state = view.state
    reason = (state.reason or ENDINGS[code].meaning)[:500]
    whole = None if state.partial or has_compensated_effects(state) else state.result
    result = whole or view.desk.put(report_body(view, code, state.reason or ENDINGS[code].meaning))
    step = _build_finish_result(view, code, reason, result, view.effect_id(99, 0))
    skipped = PhaseSkipped(reason="this workflow writes no memory")
    closed = step.state.evolve(queue=(), batch=())
    return NodeResult(
        state=closed, said=(trace_event(Phase.MEMORY_WRITE, skipped), *step.said), effects=step.effects
    )


def force_run_end(view: NodeContext, code: TerminalCode, halting: PendingInterrupt) -> NodeResult:
    """End the run at its current node, because the graph's own exit was itself interrupted."""
    result = view.state.result
    if has_compensated_effects(view.state):
        result = view.desk.put(report_body(view, code, halting.reason))
    return _build_finish_result(view, code, halting.reason, result, view.effect_id(0, 0))


def has_compensated_effects(state: RunState) -> bool:
    """Return whether any change was undone or left to people."""
    return any(deed.standing in ("undone", "left") for deed in state.deeds.values())


def _build_finish_result(
    view: NodeContext, code: TerminalCode, reason: str, result: str | None, effect: str
) -> NodeResult:
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
    said: tuple[TraceEntry, ...] = (trace_event(Phase.TRACE_LOGGING, body),)
    return NodeResult(state=state, said=said, effects=(finish,))

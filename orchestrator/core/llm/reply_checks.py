"""End a run whose model's reply cannot be used: cut short by the budget, or against a safety rule."""

from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_events import ModelReplied
from orchestrator.core.guardrails.safety_rules import find_reply_violation
from orchestrator.core.workflow.node_protocol import (
    NodeContext,
    NodeResult,
    make_interrupt_result,
    trace_event,
)
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    BreakerTripped,
)
from traces.core.integrity.chain import TraceEntry

READ_CHARS = 256_000


# How providers say that a reply stopped at the limit of its output.
CUT = frozenset({"length", "max_tokens", "max_output_tokens"})


def cut_short(view: NodeContext, event: ModelReplied, said: tuple[TraceEntry, ...]) -> NodeResult | None:
    """The end of a run whose budget cut a reply short: no whole answer, nor surely whole calls; None for any
    other reply. All of it stays in the trace, and none of it is used (R-BUDGET-18)."""
    state = view.state
    if not state.shortened or event.finish.lower() not in CUT:
        return None
    tripped = BreakerTripped(breaker="budget_gate", reason=state.shortened, subject="reply cut short")
    told = (*said, trace_event(Phase.ESCALATION_CHECK, tripped))
    fresh = state.evolve(counters=state.counters.evolve(model_attempts=0), cut=state.shortened)
    return make_interrupt_result(fresh, Interrupt.BUDGET_EXHAUSTED, state.shortened, told)


def stop_unsafe_reply(
    view: NodeContext, event: ModelReplied, said: tuple[TraceEntry, ...]
) -> NodeResult | None:
    """The end of a run whose model breaks a safety rule in its reply; None where it does not. Fails closed:
    nothing of the reply is used, all of it stays in the trace (R-BUDGET-12)."""
    texts = [event.answer, *(request.arguments for request in event.requests)]
    view.desk.require(digest for digest in texts if digest is not None)
    written = [view.desk.text(digest, READ_CHARS) for digest in texts if digest is not None]
    found = find_reply_violation(written, event.redacted, view.pins.prompts.values())
    if found is None:
        return None
    tripped = BreakerTripped(breaker="safety", reason=found, subject="reply")
    told = (*said, trace_event(Phase.ESCALATION_CHECK, tripped))
    return make_interrupt_result(view.state.evolve(reply=event.reply), Interrupt.UNSAFE, found, told)

"""Trace events for a run that has ended or moved on: recorded, without any change (G9, docs/ring.md)."""

from orchestrator.core.accounting.settlement import Outcome
from orchestrator.core.domain.run_events import (
    AnyEvent,
    GateDecided,
    LateAnswer,
    ModelFailed,
    ModelReplied,
    QuestionAnswered,
    Recovered,
    ToolAnswered,
    ToolFailed,
)
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.workflow.node_protocol import trace_event
from traces.core.events import trace_events as trace
from traces.core.events.phases import Phase
from traces.core.integrity.chain import TraceEntry


def trace_late_outcome(event: Outcome) -> tuple[TraceEntry, ...]:
    """Trace an outcome of an effect that is not in flight, or no longer."""
    status, observation = _extract_outcome_status(event)
    body = trace.LateOutcome(effect=event.effect, status=status, observation=observation)
    return (trace_event(Phase.OBSERVATION_GROUNDING, body),)


def _extract_outcome_status(event: Outcome) -> tuple[str, str | None]:
    if isinstance(event, ModelReplied):
        return "ok", event.reply
    if isinstance(event, ToolAnswered):
        return "ok", event.observation
    if isinstance(event, ModelFailed | ToolFailed):
        return event.error, event.detail
    return event.resolution, event.observation


def trace_late_event(state: RunState, event: AnyEvent) -> tuple[TraceEntry, ...]:
    """Trace an event for a run that has ended.

    An event that carries no outcome and no late answer is traced as a refused decision.
    """
    if isinstance(event, ModelReplied | ModelFailed | ToolAnswered | ToolFailed | Recovered):
        return trace_late_outcome(event)
    if isinstance(event, LateAnswer):
        body = trace.LateOutcome(effect=event.effect, status=event.status, observation=event.observation)
        return (trace_event(Phase.OBSERVATION_GROUNDING, body),)
    if isinstance(event, GateDecided | QuestionAnswered):
        refused = trace.DecisionRefused(
            request=event.request, by=event.by, reason=f"run_{state.status.value}"
        )
        return (trace_event(Phase.ESCALATION_CHECK, refused),)
    by = getattr(event, "by", "")
    ignored = trace.DecisionRefused(request=event.kind, by=by, reason=f"run_{state.status.value}")
    return (trace_event(Phase.ESCALATION_CHECK, ignored),)

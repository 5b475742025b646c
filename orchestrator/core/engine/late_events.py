"""What may still be said of a run that has ended or moved on: it is recorded and changes nothing (G9,
docs/ring.md)."""

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
from orchestrator.core.domain.run_state import State
from orchestrator.core.workflow.node_protocol import say
from traces.core.events import trace_events as trace
from traces.core.events.phases import Phase
from traces.core.integrity.chain import Said


def late(event: Outcome) -> tuple[Said, ...]:
    """An outcome of an effect that is not in flight (any more)."""
    status, observation = _seen(event)
    body = trace.LateOutcome(effect=event.effect, status=status, observation=observation)
    return (say(Phase.OBSERVATION_GROUNDING, body),)


def _seen(event: Outcome) -> tuple[str, str | None]:
    if isinstance(event, ModelReplied):
        return "ok", event.reply
    if isinstance(event, ToolAnswered):
        return "ok", event.observation
    if isinstance(event, ModelFailed | ToolFailed):
        return event.error, event.detail
    return event.resolution, event.observation


def heard(state: State, event: AnyEvent) -> tuple[Said, ...]:
    """An event for a run that has ended. Signals that came too late leave a trace only where somebody
    decided."""
    if isinstance(event, ModelReplied | ModelFailed | ToolAnswered | ToolFailed | Recovered):
        return late(event)
    if isinstance(event, LateAnswer):
        body = trace.LateOutcome(effect=event.effect, status=event.status, observation=event.observation)
        return (say(Phase.OBSERVATION_GROUNDING, body),)
    if isinstance(event, GateDecided | QuestionAnswered):
        refused = trace.DecisionRefused(
            request=event.request, by=event.by, reason=f"run_{state.status.value}"
        )
        return (say(Phase.ESCALATION_CHECK, refused),)
    by = getattr(event, "by", "")
    ignored = trace.DecisionRefused(request=event.kind, by=by, reason=f"run_{state.status.value}")
    return (say(Phase.ESCALATION_CHECK, ignored),)

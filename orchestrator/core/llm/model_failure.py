"""How a model call that brought no reply stands in the trace, and which breaker it tripped (R-BUDGET-12)."""

from decimal import Decimal

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.run_events import ModelFailed, Recovered
from orchestrator.core.workflow.node_protocol import (
    trace_event,
)
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    BreakerTripped,
    CallRecovered,
)
from traces.core.events.trace_events import ModelFailed as ModelFailedBody
from traces.core.integrity.chain import TraceEntry


def get_retry_after(event: ModelFailed | Recovered) -> int | None:
    return event.retry_after_ms if isinstance(event, ModelFailed) else None


def is_circuit_open(event: ModelFailed | Recovered) -> bool:
    return isinstance(event, ModelFailed) and event.error == "circuit_open"


def trace_circuit_refusal(event: ModelFailed | Recovered, profile: ModelProfile) -> tuple[TraceEntry, ...]:
    """The circuit's breaker, where the call was not sent for it (R-BUDGET-13)."""
    if not is_circuit_open(event):
        return ()
    body = BreakerTripped(breaker="circuit", reason="open", subject=profile.name)
    return (trace_event(Phase.ESCALATION_CHECK, body),)


def build_retry_breaker(event: ModelFailed | Recovered, attempts: int) -> BreakerTripped | None:
    """The retry storm's breaker, where retries were used up (R-BUDGET-12)."""
    if isinstance(event, ModelFailed) and not event.transient:
        return None
    return BreakerTripped(
        breaker="retry_storm",
        reason=get_failure_cause(event),
        limit=Decimal(attempts),
        actual=Decimal(attempts + 1),
    )


def trace_model_failure(event: ModelFailed | Recovered) -> TraceEntry:
    """The trace's word for a call that brought no reply."""
    if isinstance(event, Recovered):
        return trace_event(Phase.OBSERVATION_GROUNDING, CallRecovered(effect=event.effect, resolution="lost"))
    body = ModelFailedBody(
        effect=event.effect, error=event.error, transient=event.transient, detail=event.detail
    )
    return trace_event(Phase.OBSERVATION_GROUNDING, body)


def get_failure_cause(event: ModelFailed | Recovered) -> str:
    return event.error if isinstance(event, ModelFailed) else "lost"

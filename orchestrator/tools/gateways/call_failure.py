"""A failed call as the outcome of its effect, and as evidence about the tool's health."""

from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import ToolFailed
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.circuit_breaker import tool_silence_tells
from orchestrator.outbound.gateways.counters import TALLY
from orchestrator.outbound.gateways.effect_result import (
    ContentSink,
    EffectResult,
)
from orchestrator.tools.gateways.egress.service_client import (
    KEPT,
    CallFailed,
)
from orchestrator.tools.gateways.result_encoding import unread_of

UNHEALTHY = ("timeout", "crashed", "unreachable")


def read_error(performed: EffectResult) -> str:
    return str(performed.fields.get("error", ""))


def assess_health(performed: EffectResult, effect: CallTool, spec: ToolSpec) -> bool | None:
    """Return whether the tool worked; None where the run's own timeout was too short to judge."""
    error = read_error(performed)
    if error in ("timeout", "unreachable") and not tool_silence_tells(effect.timeout_ms, spec.timeout_ms):
        return None
    return error not in UNHEALTHY


def build_failure(
    effect: CallTool, keeper: ContentSink, failure: CallFailed, fault: str = ""
) -> EffectResult:
    TALLY.add("tool", effect.tool, failure.error)
    fields = {
        "effect": effect.id, "error": failure.error, "sent": failure.sent, "transient": failure.transient,
        "detail": keeper.keep(failure.detail[:KEPT]) if failure.detail else None,
        "retry_after_ms": failure.retry_after_ms, "answer": failure.answer,
    }  # fmt: skip
    unread = unread_of(keeper, failure.unread, fault) if failure.unread is not None else None
    return EffectResult(kind=ToolFailed, fields=fields, bodies=keeper.bodies, unread=unread)

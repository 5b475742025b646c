"""An action of which nobody knows whether it happened: asked of a person, never repeated (R-TOOL-9)."""

from datetime import timedelta
from uuid import UUID

from orchestrator.core.accounting.side_effects import with_doubtful_effect
from orchestrator.core.approval.compensation_approval import decided_said
from orchestrator.core.approval.packets import reconciliation_packet
from orchestrator.core.calls.open_effects import open_of, record_open_effect
from orchestrator.core.common.frozen_model import with_entry
from orchestrator.core.domain.effects import AskApproval
from orchestrator.core.domain.run_events import GateDecided
from orchestrator.core.domain.run_state import Call, Gate
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.canonical import compute_digest, encode_canonical
from traces.core.events.phases import Phase
from traces.core.events.trace_events import ApprovalRequested, CallInDoubt, Reconciled
from traces.core.integrity.chain import TraceEntry

QUEUE = "reconciliation"


def ask_what_became(view: NodeContext, call: Call) -> NodeResult:
    """Ask people about an earlier call of the same action; this one is not sent."""
    before = open_of(view.state, call)
    assert before is not None
    call = call.evolve(key=before.key, effect=before.effect)
    asked = ask_reconciliation(view, call, before.effect)
    state, said = record_open_effect(view, with_doubtful_effect(view, asked.state, call), call, "in_doubt")
    return asked._replace(state=state, said=said + asked.said)


def ask_reconciliation(view: NodeContext, call: Call, effect: str) -> NodeResult:
    """Open a request with all that is known about the call."""
    spec = view.pins.by_name[call.tool]
    expires = view.at + timedelta(seconds=view.pins.boundary.gate_ttl_seconds)
    request = UUID(view.effect_id(0, 100 + call.attempt))
    packet = reconciliation_packet(
        view, call, spec, request=request, effect=effect, queue=QUEUE, expires_at=expires
    )
    body, packet_digest = view.desk.put(packet), compute_digest("packet", packet)
    ask = AskApproval(
        id=request.hex,
        request=request,
        request_kind="reconciliation",
        call=call.id,
        packet=body,
        packet_digest=packet_digest,
        action_digest="",
        quorum=1,
        tool=spec.name,
        queue=QUEUE,
        amount=None,
        has_amount=False,
        risk=spec.risk.value,
        expires_at=expires,
    )
    gate = Gate(
        call=call.id, kind="reconciliation", packet_digest=packet_digest, action_digest="", expires_at=expires
    )
    doubtful = tuple(
        call.evolve(rung="in_doubt", error="in_doubt") if c.id == call.id else c for c in view.state.batch
    )
    state = view.state.evolve(batch=doubtful, gates=with_entry(view.state.gates, str(request), gate))
    said = (
        trace_event(
            Phase.OBSERVATION_GROUNDING,
            CallInDoubt(call=call.id, effect=effect, tool=call.tool, reason="sent_without_answer"),
        ),
        trace_event(
            Phase.ESCALATION_CHECK,
            ApprovalRequested(
                request=str(request),
                request_kind="reconciliation",
                call=call.id,
                packet=body,
                packet_digest=packet_digest,
                quorum=1,
                queue=QUEUE,
                expires_at=expires.isoformat(),
            ),
        ),
    )
    return NodeResult(state=state, said=said, effects=(ask,))


def resolve_reconciliation(
    view: NodeContext, call: Call, event: GateDecided
) -> tuple[Call, tuple[TraceEntry, ...]]:
    """The call after a person's word: observed as happened, failed as not happened, or still in doubt at a
    cancel."""
    verdict = event.decision if event.decision in ("happened", "not_happened") else "cancel"
    word = Reconciled(effect=call.effect or "", verdict=verdict, by=event.by)  # type: ignore[arg-type]
    said = (
        decided_said(event),
        trace_event(Phase.OBSERVATION_GROUNDING, word, actor="person"),
    )
    if verdict == "happened":
        observation = view.desk.put(encode_canonical({"reconciled": "happened", "by": event.by}))
        return call.evolve(rung="observed", observation=observation, error=None, verdict="reconciled"), said
    error = "not_happened" if verdict == "not_happened" else "in_doubt"
    return call.evolve(rung="failed", error=error, sent=verdict != "not_happened"), said

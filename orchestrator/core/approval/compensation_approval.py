"""Ask people whether a side effect is to be undone: approval for exactly one call.

The request is an action request like any other (R-TOOL-15, R-APPR-4).
"""

from datetime import timedelta
from uuid import UUID

from orchestrator.core.approval.packets import action_packet, approvers_for
from orchestrator.core.calls.action_digest import action_digest
from orchestrator.core.common.frozen_model import with_entry
from orchestrator.core.domain.effects import AskApproval
from orchestrator.core.domain.run_events import GateDecided
from orchestrator.core.domain.run_state import Call, Gate, Grant, RunState
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.canonical import compute_digest
from traces.core.events.phases import Phase
from traces.core.events.trace_events import ApprovalDecided, ApprovalRequested, ApprovalWithdrawn
from traces.core.integrity.chain import TraceEntry

ORDINAL = 61


def ask_leave(view: NodeContext, state: RunState, call: Call) -> NodeResult:
    """Freeze the packet of the compensating call and request approval."""
    spec = view.pins.by_name[call.tool]
    expires = view.at + timedelta(seconds=view.pins.boundary.gate_ttl_seconds)
    request = UUID(view.effect_id(ORDINAL, call.attempt + 1))
    action = action_digest(view, call, spec)
    amount, quorum = approvers_for(view, call, spec)
    packet = action_packet(
        view, call, spec, request=request, action=action, queue=spec.queue, quorum=quorum, expires_at=expires
    )
    body, packet_digest = view.desk.put(packet), compute_digest("packet", packet)
    ask = AskApproval(
        id=request.hex, request=request, request_kind="action", call=call.id, packet=body,
        packet_digest=packet_digest, action_digest=action, quorum=quorum, tool=spec.name, queue=spec.queue,
        amount=amount, has_amount=spec.amount is not None, risk=view.risk_of(spec).value, expires_at=expires,
    )  # fmt: skip
    gate = Gate(
        call=call.id, kind="action", packet_digest=packet_digest, action_digest=action, expires_at=expires
    )
    asked = ApprovalRequested(
        request=str(request), request_kind="action", call=call.id, packet=body, packet_digest=packet_digest,
        action_digest=action, quorum=quorum, queue=spec.queue, expires_at=expires.isoformat(),
    )  # fmt: skip
    waiting = state.evolve(
        gates=with_entry(state.gates, str(request), gate), batch=(call.evolve(request=str(request)),)
    )
    return NodeResult(state=waiting, said=(trace_event(Phase.ESCALATION_CHECK, asked),), effects=(ask,))


def decided_said(event: GateDecided) -> TraceEntry:
    """Return the trace entry of a decision."""
    body = ApprovalDecided(
        request=event.request, decision=event.decision, decision_digest=event.decision_digest, by=event.by,
        role=event.role, packet_digest=event.packet_digest, arguments=event.arguments,
    )  # fmt: skip
    return trace_event(Phase.ESCALATION_CHECK, body, actor="person")


def with_call_grant(view: NodeContext, call: Call, event: GateDecided) -> Call:
    """Return the call with the grant to be made once, as it was approved or edited."""
    assert call.arguments is not None
    edited = event.decision == "edit" and event.arguments is not None
    arguments = event.arguments if edited and event.arguments is not None else call.arguments
    argument_digest = compute_digest("arguments", view.desk.read(arguments))
    grant = Grant(request=event.request, arguments=arguments, by=event.by, argument_digest=argument_digest)
    return call.evolve(
        grant=grant, arguments=arguments, argument_digest=argument_digest, edited=call.edited or edited
    )


def trace_withdrawn_requests(state: RunState, reason: str) -> tuple[TraceEntry, ...]:
    """Return the trace entries of requests that no longer need an answer."""
    return tuple(
        trace_event(Phase.ESCALATION_CHECK, ApprovalWithdrawn(request=request, reason=reason))
        for request in sorted(state.gates)
    )

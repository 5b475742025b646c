"""approval: a person decides on exactly one call (phase 15). The run waits and holds no worker."""

from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from pydantic import Field

from orchestrator.core.approval.change_requests import (
    OUTCOME,
    may_be_sent_back,
    sent_back,
    with_settled_change_request,
)
from orchestrator.core.approval.compensation_approval import decided_said
from orchestrator.core.approval.packets import action_packet, approvers_for
from orchestrator.core.calls.action_digest import action_digest
from orchestrator.core.calls.effective_risk import risk_of_call
from orchestrator.core.common.frozen_model import FrozenModel, with_entry, without_keys
from orchestrator.core.domain.effects import AskApproval
from orchestrator.core.domain.run_events import AnyEvent, GateDecided, GateExpired
from orchestrator.core.domain.run_state import Gate, Grant
from orchestrator.core.nodes.acting.act import not_run
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.canonical import compute_digest
from traces.core.events.phases import Phase
from traces.core.events.trace_events import ApprovalExpired, ApprovalRequested
from traces.core.integrity.chain import TraceEntry


class Config(FrozenModel):
    """`queue` overrides the tool's; `ttl_seconds` the boundary's. `proposals`: how many a step may make; the
    last of them can only be allowed or refused."""

    queue: str | None = None
    ttl_seconds: int | None = None
    proposals: int = Field(default=3, ge=1, le=10)


class Approval(PlainNode):
    kind: ClassVar[str] = "approval"
    outcomes: ClassVar[tuple[str, ...]] = ("approved", "edited", "rejected", OUTCOME, "expired")
    optional: ClassVar[tuple[str, ...]] = (OUTCOME,)
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.ESCALATION_CHECK)
    artifact: ClassVar[str] = "escalation event payload"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Freeze the packet and ask."""
        config: Config = view.node.config
        call = view.state.queue[0]
        spec = view.pins.by_name[call.tool]
        seconds = config.ttl_seconds or view.pins.boundary.gate_ttl_seconds
        expires = view.at + timedelta(seconds=seconds)
        effect_id = view.effect_id(0, len(view.state.gates) + 1)
        request = UUID(effect_id)
        action = action_digest(view, call, spec)
        queue = config.queue or spec.queue
        amount, quorum = approvers_for(view, call, spec)
        packet = action_packet(
            view, call, spec, request=request, action=action, queue=queue, quorum=quorum, expires_at=expires,
            proposals=config.proposals,
        )  # fmt: skip
        body = view.desk.put(packet)
        packet_digest = compute_digest("packet", packet)
        ask = AskApproval(
            id=effect_id,
            request=request,
            request_kind="action",
            call=call.id,
            packet=body,
            packet_digest=packet_digest,
            action_digest=action,
            quorum=quorum,
            tool=spec.name,
            queue=queue,
            amount=amount,
            has_amount=spec.amount is not None,
            risk=risk_of_call(view, spec, call).value,
            expires_at=expires,
        )
        gate = Gate(
            call=call.id, kind="action", packet_digest=packet_digest, action_digest=action, expires_at=expires
        )
        waiting = call.evolve(request=str(request))
        state = view.state.evolve(
            gates=with_entry(view.state.gates, str(request), gate), queue=(waiting, *view.state.queue[1:])
        )  # fmt: skip
        return NodeResult(
            state=state,
            said=(trace_event(Phase.ESCALATION_CHECK, _build_approval_event(ask)),),
            effects=(ask,),
        )

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """A decision, or its absence."""
        if isinstance(event, GateDecided):
            return self._handle_decision(view, event)
        if isinstance(event, GateExpired):
            return self._handle_expiry(view, event)
        if event.kind == "timer_fired":
            return NodeResult(state=view.state)
        raise UnexpectedEvent(node=view.node.id, event=event.kind)

    def _handle_decision(self, view: NodeContext, event: GateDecided) -> NodeResult:
        state = view.state.evolve(gates=without_keys(view.state.gates, event.request))
        said = (decided_said(event),)
        call = state.queue[0]
        config: Config = view.node.config
        if event.decision == "revise":
            if event.reason is None or not may_be_sent_back(view, call, config.proposals):
                raise UnexpectedEvent(node=view.node.id, event=event.kind)
            after, why = sent_back(view, call, event)
            return NodeResult(state=after, outcome=OUTCOME, said=(*said, why))
        if event.decision not in ("approve", "edit"):
            # What cannot be followed is no yes.
            return self._handle_rejection(view, event, said)
        assert call.arguments is not None
        edited = event.decision == "edit" and event.arguments is not None
        arguments = event.arguments if edited and event.arguments is not None else call.arguments
        grant = Grant(
            request=event.request,
            arguments=arguments,
            by=event.by,
            argument_digest=compute_digest("arguments", view.desk.read(arguments)),
        )
        granted = call.evolve(grant=grant, arguments=arguments, edited=call.edited or edited)
        return NodeResult(
            state=with_settled_change_request(state, call).evolve(queue=(granted, *state.queue[1:])),
            outcome="edited" if edited else "approved",
            said=said,
        )

    def _handle_rejection(
        self, view: NodeContext, event: GateDecided, said: tuple[TraceEntry, ...]
    ) -> NodeResult:
        state = view.state
        call = state.queue[0]
        result, why = not_run(view, call, "rejected", _format_rejection_reason(view, event))
        refused = with_entry(state.refused, call.tool, state.refused.get(call.tool, 0) + 1)
        counters = state.counters.evolve(refusals=state.counters.refusals + 1)
        rejected = with_settled_change_request(state, call).evolve(
            gates=without_keys(state.gates, event.request),
            queue=state.queue[1:],
            results=(*state.results, result),
            refused=refused,
            counters=counters,
            reason=f"rejected:{call.tool}",
            last_askers=(call.by,),
        )
        return NodeResult(state=rejected, outcome="rejected", said=(*said, why))

    def _handle_expiry(self, view: NodeContext, event: GateExpired) -> NodeResult:
        body = ApprovalExpired(request=event.request)
        state = view.state.evolve(
            gates=without_keys(view.state.gates, event.request), expired=True, reason="gate_expired"
        )
        return NodeResult(state=state, outcome="expired", said=(trace_event(Phase.ESCALATION_CHECK, body),))


def _format_rejection_reason(view: NodeContext, event: GateDecided) -> str:
    words = view.desk.text(event.reason, 1_000) if event.reason is not None else ""
    return f"a person rejected this call: {words}" if words else "a person rejected this call"


def _build_approval_event(ask: AskApproval) -> ApprovalRequested:
    return ApprovalRequested(
        request=str(ask.request),
        request_kind=ask.request_kind,
        call=ask.call,
        packet=ask.packet,
        packet_digest=ask.packet_digest,
        action_digest=ask.action_digest,
        quorum=ask.quorum,
        queue=ask.queue,
        expires_at=ask.expires_at.isoformat(),
    )


KIND = Approval()

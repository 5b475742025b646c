"""ask_user: the submitter is asked for exactly what is missing (phase 15). The run waits and holds no
worker."""

from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from orchestrator.core.approval.packets import question_packet
from orchestrator.core.common.frozen_model import FrozenModel, with_entry, without_keys
from orchestrator.core.domain.effects import AskPerson
from orchestrator.core.domain.run_events import AnyEvent, GateExpired, QuestionAnswered
from orchestrator.core.domain.run_state import Gate
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.canonical import compute_digest
from traces.core.events.phases import Phase
from traces.core.events.trace_events import ApprovalExpired, ApprovalRequested
from traces.core.events.trace_events import QuestionAnswered as AnsweredBody


class Config(FrozenModel):
    """`text` is the question; `candidates` are readings to choose among; `ttl_seconds` overrides the
    boundary's."""

    text: str = "Some information is missing."
    candidates: tuple[str, ...] = ()
    ttl_seconds: int | None = None


class AskUser(PlainNode):
    kind: ClassVar[str] = "ask_user"
    outcomes: ClassVar[tuple[str, ...]] = ("answered", "expired")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.ESCALATION_CHECK)
    artifact: ClassVar[str] = "escalation event payload"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Ask with a typed form made from the workflow's own input schema."""
        config: Config = view.node.config
        seconds = config.ttl_seconds or view.pins.boundary.gate_ttl_seconds
        expires = view.at + timedelta(seconds=seconds)
        effect_id = view.effect_id(0, len(view.state.answers) + 1)
        schema = answer_schema(view, config)
        packet = question_packet(
            view, text=config.text, candidates=config.candidates, request=UUID(effect_id), expires_at=expires
        )
        body, packet_digest = view.desk.put(packet), compute_digest("packet", packet)
        ask = AskPerson(
            id=effect_id,
            request=UUID(effect_id),
            packet=body,
            packet_digest=packet_digest,
            answer_schema=schema,
            expires_at=expires,
        )
        gate = Gate(
            call="", kind="question", packet_digest=packet_digest, action_digest="", expires_at=expires
        )
        state = view.state.evolve(gates=with_entry(view.state.gates, str(ask.request), gate))
        said = ApprovalRequested(
            request=str(ask.request),
            request_kind="clarification",
            packet=body,
            packet_digest=packet_digest,
            quorum=1,
            queue="submitter",
            expires_at=expires.isoformat(),
        )
        return NodeResult(state=state, said=(trace_event(Phase.ESCALATION_CHECK, said),), effects=(ask,))

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """The answer, or its absence."""
        if isinstance(event, QuestionAnswered):
            state = view.state.evolve(
                gates=without_keys(view.state.gates, event.request),
                asked=(),
                reason="",
                answers=(*view.state.answers, event.answer),
            )
            body = AnsweredBody(request=event.request, answer=event.answer, by=event.by)
            return NodeResult(
                state=state,
                outcome="answered",
                said=(trace_event(Phase.ESCALATION_CHECK, body, actor="person"),),
            )
        if isinstance(event, GateExpired):
            over = view.state.evolve(
                gates=without_keys(view.state.gates, event.request), expired=True, reason="question_expired"
            )
            expired = trace_event(Phase.ESCALATION_CHECK, ApprovalExpired(request=event.request))
            return NodeResult(state=over, outcome="expired", said=(expired,))
        if event.kind == "timer_fired":
            return NodeResult(state=view.state)
        raise UnexpectedEvent(node=view.node.id, event=event.kind)


def answer_schema(view: NodeContext, config: Config) -> dict[str, Any]:
    """The form: the missing fields as the workflow's input schema types them, or one of the candidates."""
    if config.candidates:
        choice = {"type": "string", "enum": list(config.candidates)}
        return {
            "type": "object",
            "properties": {"intent": choice},
            "required": ["intent"],
            "additionalProperties": False,
        }
    known = view.graph.spec.input_schema.get("properties", {})
    fields = view.state.asked or tuple(known)
    properties = {
        name: known.get(name, {"type": "string", "minLength": 1, "maxLength": 2_000}) for name in fields
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(fields),
        "additionalProperties": False,
    }


KIND = AskUser()

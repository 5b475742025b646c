"""respond: one model call without tools, whose text is the draft (tiers 1 to 4; phase 16)."""

from typing import ClassVar

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.run_events import AnyEvent, ModelFailed, ModelReplied, Recovered, TimerFired
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.llm.model_call import (
    ModelCallConfig,
    exit_model_unavailable,
    handle_model_timer,
    request_model_call,
    retry_model_call,
)
from orchestrator.core.llm.model_failure import trace_model_failure
from orchestrator.core.llm.reply_checks import cut_short, stop_unsafe_reply
from orchestrator.core.nodes.acting.act import replied_said
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import OutputDrafted
from traces.core.integrity.chain import TraceEntry


class Respond(PlainNode):
    kind: ClassVar[str] = "respond"
    outcomes: ClassVar[tuple[str, ...]] = ("drafted", "refused", "empty", "model_unavailable")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.FINAL_RESPONSE)
    artifact: ClassVar[str] = "draft"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[FrozenModel]] = ModelCallConfig

    def enter(self, view: NodeContext) -> NodeResult:
        """Ask for the text."""
        return request_model_call(view, view.state, view.node.config, ())

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """A reply, a failure, or the time to try again."""
        if isinstance(event, ModelReplied):
            return self._handle_reply(view, event)
        if isinstance(event, Recovered):
            return NodeResult(state=view.state, said=(trace_model_failure(event),), anew=True)
        if isinstance(event, ModelFailed):
            return self._handle_failure(view, event)
        if isinstance(event, TimerFired):
            return handle_model_timer(
                view, lambda state: request_model_call(view, state, view.node.config, ())
            )
        raise UnexpectedEvent(node=view.node.id, event=event.kind)

    def _handle_failure(self, view: NodeContext, event: ModelFailed) -> NodeResult:
        retry = retry_model_call(view, event, view.node.config, ())
        return exit_model_unavailable(view, event) if retry is None else retry

    def _handle_reply(self, view: NodeContext, event: ModelReplied) -> NodeResult:
        said = (replied_said(event),)
        if (unsafe := stop_unsafe_reply(view, event, said)) is not None:
            return unsafe
        if (short := cut_short(view, event, said)) is not None:
            return short
        state = view.state.evolve(
            counters=view.state.counters.evolve(model_attempts=0), feedback=None, reply=None
        )
        if event.refusal:
            return NodeResult(state=state.evolve(reason="model_refused"), outcome="refused", said=said)
        if event.answer is None:
            return self._empty(view, state, said)
        drafted = trace_event(Phase.FINAL_RESPONSE, OutputDrafted(draft=event.answer))
        return NodeResult(state=state.evolve(draft=event.answer), outcome="drafted", said=(*said, drafted))

    def _empty(self, view: NodeContext, state: RunState, said: tuple[TraceEntry, ...]) -> NodeResult:
        config: ModelCallConfig = view.node.config
        tries = state.counters.empty + 1
        counted = state.evolve(counters=state.counters.evolve(empty=tries))
        if tries > config.empty_retries:
            return NodeResult(state=counted.evolve(reason="empty_reply"), outcome="empty", said=said)
        return NodeResult(state=counted, said=said, anew=True)


KIND = Respond()

"""act: one model turn with the visible tools (phase 8). The reply's calls become an ordered queue."""

from typing import ClassVar, Literal

from orchestrator.core.approval.change_requests import asked_anew
from orchestrator.core.common.frozen_model import FrozenModel, with_entry, without_keys
from orchestrator.core.domain.run_events import AnyEvent, ModelFailed, ModelReplied, Recovered, TimerFired
from orchestrator.core.domain.run_state import Call, Result, RunState
from orchestrator.core.guardrails.policy_evaluation import with_planned_calls
from orchestrator.core.llm.model_call import (
    ModelCallConfig,
    exit_model_unavailable,
    handle_model_timer,
    request_model_call,
    retry_model_call,
)
from orchestrator.core.llm.model_failure import trace_model_failure
from orchestrator.core.llm.prompt_builder import exchange_link, visible_tools
from orchestrator.core.llm.reply_checks import cut_short, stop_unsafe_reply
from orchestrator.core.workflow.edge_guards import MODEL
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.canonical import encode_canonical
from traces.core.events.phases import Phase
from traces.core.events.trace_events import CallAnsweredNot, CallRequested, OutputDrafted
from traces.core.events.trace_events import ModelReplied as RepliedBody
from traces.core.integrity.chain import TraceEntry

KEPT_LINKS = 16


class Act(PlainNode):
    kind: ClassVar[str] = "act"
    outcomes: ClassVar[tuple[str, ...]] = ("requested", "answered", "refused", "empty", "model_unavailable")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.ACTION_SELECTION)
    artifact: ClassVar[str] = "proposed action"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[FrozenModel]] = ModelCallConfig

    def enter(self, view: NodeContext) -> NodeResult:
        """Close the last turn into one link of the conversation and ask."""
        return request_model_call(view, _with_linked_exchange(view), view.node.config, visible_tools(view))

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """A reply, a failure, or the time to try again."""
        if isinstance(event, ModelReplied):
            return self._handle_reply(view, event)
        if isinstance(event, ModelFailed | Recovered):
            return self._handle_failure(view, event)
        if isinstance(event, TimerFired):
            return handle_model_timer(
                view, lambda state: request_model_call(view, state, view.node.config, visible_tools(view))
            )
        raise UnexpectedEvent(node=view.node.id, event=event.kind)

    def _handle_failure(self, view: NodeContext, event: ModelFailed | Recovered) -> NodeResult:
        config: ModelCallConfig = view.node.config
        if isinstance(event, Recovered):
            return NodeResult(state=view.state, said=(trace_model_failure(event),), anew=True)
        retry = retry_model_call(view, event, config, visible_tools(view))
        return exit_model_unavailable(view, event) if retry is None else retry

    def _handle_reply(self, view: NodeContext, event: ModelReplied) -> NodeResult:
        config: ModelCallConfig = view.node.config
        said = (replied_said(event),)
        if (unsafe := stop_unsafe_reply(view, event, said)) is not None:
            return unsafe
        if (short := cut_short(view, event, said)) is not None:
            return short
        counters = view.state.counters.evolve(model_attempts=0)
        state = view.state.evolve(reply=event.reply, counters=counters, feedback=None)
        if event.requests:
            return self._handle_requests(view, event, state, said)
        if event.refusal:
            return NodeResult(state=state.evolve(reason="model_refused"), outcome="refused", said=said)
        if event.answer is None:
            return self._empty(state, config, said)
        drafted = trace_event(Phase.ACTION_SELECTION, OutputDrafted(draft=event.answer))
        fresh = state.evolve(draft=event.answer, counters=counters.evolve(empty=0))
        fresh = asked_anew(view, fresh, MODEL, ())
        return NodeResult(state=fresh, outcome="answered", said=(*said, drafted))

    def _empty(self, state: RunState, config: ModelCallConfig, said: tuple[TraceEntry, ...]) -> NodeResult:
        """Neither answer nor call: ask again a few times, then a typed end (R-LOOP-9)."""
        tries = state.counters.empty + 1
        counted = state.evolve(counters=state.counters.evolve(empty=tries), reply=None)
        if tries > config.empty_retries:
            return NodeResult(state=counted.evolve(reason="empty_reply"), outcome="empty", said=said)
        return NodeResult(state=counted, said=said, anew=True)

    def _handle_requests(
        self, view: NodeContext, event: ModelReplied, state: RunState, said: tuple[TraceEntry, ...]
    ) -> NodeResult:
        limit = view.pins.boundary.max_calls_per_reply
        calls, results, told = [], [], list(said)
        for ordinal, request in enumerate(event.requests):
            call = Call(
                id=f"c{state.counters.calls + ordinal + 1}",
                by="model",
                provider_id=request.call_id,
                tool=request.name,
                raw=request.arguments,
            )
            body = CallRequested(
                call=call.id, tool=call.tool, arguments=call.raw, ordinal=ordinal, by="model"
            )
            told.append(trace_event(Phase.ACTION_SELECTION, body))
            if ordinal < limit:
                calls.append(call)
            else:
                result, why = not_run(view, call, "not_run", f"more than {limit} calls in one reply")
                results.append(result)
                told.append(why)
        counters = state.counters.evolve(calls=state.counters.calls + len(event.requests), empty=0)
        queued = state.evolve(queue=tuple(calls), results=tuple(results), counters=counters)
        queued = asked_anew(view, queued, MODEL, tuple(call.tool for call in calls))
        return NodeResult(
            state=with_planned_calls(view, queued, calls), outcome="requested", said=tuple(told)
        )


Shape = Literal["answer", "requests", "refusal", "empty"]


def replied_said(event: ModelReplied) -> TraceEntry:
    """The trace's word for a reply."""
    shape: Shape = "empty"
    if event.requests:
        shape = "requests"
    elif event.refusal:
        shape = "refusal"
    elif event.answer is not None:
        shape = "answer"
    body = RepliedBody(
        effect=event.effect,
        reply=event.reply,
        shape=shape,
        calls=len(event.requests),
        finish=event.finish[:64],
        usage=event.usage,
        counted=event.counted,
    )
    return trace_event(Phase.ACTION_SELECTION, body, actor="model")


def not_run(view: NodeContext, call: Call, status: str, detail: str) -> tuple[Result, TraceEntry]:
    """The structured result of a call that was not run (R-LOOP-3)."""
    text = f'{{"status":"{status}","detail":{_quote_json_string(detail)}}}'
    content = view.desk.put(text.encode())
    result = Result(
        call=call.id, provider_id=call.provider_id, tool=call.tool, status=status, content=content
    )
    body = CallAnsweredNot(call=call.id, status=status, detail=detail[:300], result=content)
    return result, trace_event(Phase.TOOL_ELIGIBILITY, body)


def _quote_json_string(text: str) -> str:
    return encode_canonical(text).decode()


def _with_linked_exchange(view: NodeContext) -> RunState:
    """The state with the finished turn as one more link; the window is bounded."""
    state = view.state
    if state.reply is None or not state.results:
        return state
    reply = view.desk.json(state.reply)
    link = exchange_link(state.reply, reply.get("calls", []), _in_order(state.results))
    digest = view.desk.put(link)
    number = state.linked + 1
    kept = without_keys(state.exchanges, str(number - KEPT_LINKS))
    return state.evolve(
        exchanges=with_entry(kept, str(number), digest), linked=number, reply=None, results=()
    )


def _in_order(results: tuple[Result, ...]) -> tuple[Result, ...]:
    """Results in the order in which their calls were asked for."""
    return tuple(sorted(results, key=lambda result: int(result.call[1:])))


KIND = Act()

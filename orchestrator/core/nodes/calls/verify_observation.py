"""verify_observation: does the payload show what was expected? Only a yes may update state (phase 10, rung
4).

A result must fit its output schema (a misfit is parser drift, R-TOOL-14), satisfy the tool's predicate,
and, where the tool names a reader, stand when read back from the system that was changed (R-TOOL-12).
"""

import re
from typing import Any, ClassVar

import orjson

from orchestrator.core.calls.invocation import with_updated_call
from orchestrator.core.calls.read_back import compare_read_back, read_back, reader_of
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.run_events import AnyEvent, TimerFired, ToolAnswered, ToolFailed
from orchestrator.core.domain.run_state import Call, RungName, RunState
from orchestrator.core.guardrails.content_screening import (
    screen_content,
    stop_unsafe_run,
    with_safety_alarm,
    words_of,
)
from orchestrator.core.tools.schema_drift import CUT, drift_said, fault_of, with_drifted_tools
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.goal_inputs import MISSING, is_same_value, resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import CallObserved, CallVerified
from traces.core.integrity.chain import TraceEntry

# Judged so far; its reader has the last word.
READING = "reading"
WORST_FIRST = ("unsafe", "conflict", "failed", "low_confidence")


class Config(FrozenModel):
    """`unsafe`: patterns whose presence in a result closes the run (fail closed)."""

    unsafe: tuple[str, ...] = ()


class VerifyObservation(PlainNode):
    kind: ClassVar[str] = "verify_observation"
    outcomes: ClassVar[tuple[str, ...]] = ("verified", "failed", "conflict", "low_confidence", "unsafe")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.OBSERVATION_GROUNDING)
    artifact: ClassVar[str] = "grounded observation"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Judge every call of the batch; read back where the tool asks for it, one after the other."""
        view.desk.require(c.observation for c in view.state.batch if c.observation is not None)
        view.desk.require(c.arguments for c in view.state.batch if c.arguments is not None)
        state = view.state
        said: list[TraceEntry] = []
        for call in view.state.batch:
            if call.verdict not in (None, "reconciled"):
                # The run was here before, and asked a reader.
                continue
            if call.observation is not None:
                body = view.desk.read(call.observation)
                screened = screen_content(view, "result", words_of(body), call.tool)
                if screened.severity == "stop":
                    return stop_unsafe_run(state, screened, call.tool, tuple(said))
                state = with_safety_alarm(state, screened)
                said.extend(screened.said)
            judged, words = self._judge_call(view, call)
            state = with_drifted_tools(state.evolve(batch=with_updated_call(state, judged)), words)
            said.extend(words)
        waiting = next((call for call in state.batch if call.verdict == READING), None)
        if waiting is None:
            return self._answer(state, tuple(said))
        asked = read_back(view, state, waiting, waiting.attempt)
        return NodeResult(state=asked.state, said=(*said, *asked.said), effects=asked.effects)

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """The reader's answer or failure."""
        state = view.state
        if isinstance(event, TimerFired):
            return NodeResult(state=state)
        if not isinstance(event, ToolAnswered | ToolFailed):
            raise UnexpectedEvent(node=view.node.id, event=event.kind)
        call = next(held for held in state.batch if held.verdict == READING)
        if isinstance(event, ToolAnswered):
            body = CallObserved(
                call=call.id,
                effect=event.effect,
                status="read_back",
                observation=event.observation,
                size=event.size,
            )
            verdict, detail = compare_read_back(view, call, event.observation)
            judged, words = self._mark(view, call.evolve(read_back=event.observation), verdict, detail)
            said = (trace_event(Phase.OBSERVATION_GROUNDING, body), *words)
            return self._go_on(state.evolve(batch=with_updated_call(state, judged)), said)
        return self._unreadable(view, call, event)

    def _unreadable(self, view: NodeContext, call: Call, event: ToolFailed) -> NodeResult:
        body = CallObserved(
            call=call.id, effect=event.effect, status=event.error, observation=event.detail, size=0
        )
        said = (trace_event(Phase.OBSERVATION_GROUNDING, body),)
        tries = call.attempt + 1
        if event.transient and tries <= 1 + reader_of(view, call).max_retries:
            again = call.evolve(attempt=tries, verdict=READING)
            return self._go_on(view.state.evolve(batch=with_updated_call(view.state, again)), said)
        judged, words = self._mark(view, call, "low_confidence", f"the reader failed: {event.error}")
        return self._go_on(view.state.evolve(batch=with_updated_call(view.state, judged)), said + words)

    def _go_on(self, state: RunState, said: tuple[TraceEntry, ...]) -> NodeResult:
        """Answer when no reader is left to be asked. What was heard of one holds, whether or not the next may
        be asked just now: the node is entered anew for that."""
        if any(call.verdict == READING for call in state.batch):
            return NodeResult(state=state, said=said, anew=True)
        return self._answer(state, said)

    def _judge_call(  # noqa: PLR0911 - one return a verdict reads better than a variable carried through
        self, view: NodeContext, call: Call
    ) -> tuple[Call, tuple[TraceEntry, ...]]:
        """The call with its verdict, or without one where it must be read back first."""
        if call.rung == "failed":
            return self._mark(view, call, "failed", call.error or "")
        if call.verdict == "reconciled":
            return self._mark(view, call, "verified", "a person's word")
        assert call.observation is not None
        fault, value = self._parse_observation(view, call)
        if fault is not None:
            judged, words = self._mark(view, call.evolve(error="malformed"), *fault)
            return judged, words + drift_said(view, call, fault[1])
        spec = view.pins.by_name[call.tool]
        if spec.verifier is not None:
            document = {"arguments": view.desk.json(call.arguments or ""), "result": value}
            wrong = [a for a, b in spec.verifier.equal.items() if not _has_equal_values(document, a, b)]
            if wrong:
                return self._mark(view, call.evolve(error="post_condition"), "failed", f"differs: {wrong[0]}")
            if spec.verifier.read_back is not None:
                return call.evolve(attempt=1, verdict=READING), ()
        elif spec.is_mutating:
            return self._mark(view, call, "observed_only", "the tool names no verifier")
        return self._mark(view, call, "verified", "")

    def _parse_observation(self, view: NodeContext, call: Call) -> tuple[tuple[str, str] | None, Any]:
        config: Config = view.node.config
        body = view.desk.read(call.observation or "")
        text = body.decode("utf-8", "backslashreplace")
        if any(re.search(pattern, text) for pattern in config.unsafe):
            return ("unsafe", "an unsafe pattern stands in the result"), None
        spec = view.pins.by_name[call.tool]
        cut = call.unread is not None and call.unread.fault == CUT
        if fault := fault_of(spec, body, cut=cut):
            return ("failed", fault), None
        return None, orjson.loads(body)

    def _mark(
        self, view: NodeContext, call: Call, verdict: str, detail: str
    ) -> tuple[Call, tuple[TraceEntry, ...]]:
        spec = view.pins.by_name[call.tool]
        validator = spec.verifier.name if spec.verifier is not None else "schema"
        body = CallVerified(call=call.id, validator=validator, verdict=verdict, detail=detail[:300])  # type: ignore[arg-type]
        rung: RungName = "verified" if verdict in ("verified", "observed_only") else "failed"
        marked = call.evolve(
            verdict=verdict, rung=rung, error=call.error or (None if rung == "verified" else verdict)
        )
        return marked, (trace_event(Phase.OBSERVATION_GROUNDING, body),)

    def _answer(self, state: RunState, said: tuple[TraceEntry, ...]) -> NodeResult:
        verdicts = {call.verdict: call for call in state.batch}
        worst = next((verdict for verdict in WORST_FIRST if verdict in verdicts), "verified")
        reason = state.reason if worst == "verified" else f"{worst}:{verdicts[worst].tool}"
        answered = state if reason == state.reason else state.evolve(reason=reason)
        return NodeResult(state=answered, outcome=worst, said=said)


def _has_equal_values(document: Any, left: str, right: str) -> bool:
    a, b = resolve_pointer(document, left), resolve_pointer(document, right)
    return a is not MISSING and is_same_value(a, b)


KIND = VerifyObservation()

"""Compensation: undo what a run did before it ends without its result (R-TOOL-15).

Whatever leads a run to a failure or a halt, the run ends only after each of its side effects was undone,
newest first, or left to people with the reason. Each undo is a call like any other: written ahead, keyed,
recovered after a crash, verified. An undo that fails does not prevent the others. An emergency stop ends
the compensation at once.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

import orjson

from orchestrator.core.accounting.effect_cost import find_budget_shortfall
from orchestrator.core.accounting.side_effects import newest_first, undo_room, without_undo_reserve
from orchestrator.core.approval.compensation_approval import (
    ask_leave,
    decided_said,
    trace_withdrawn_requests,
    with_call_grant,
)
from orchestrator.core.calls.invocation import classify_call_failure, launch_call
from orchestrator.core.calls.read_back import compare_read_back, read_back
from orchestrator.core.calls.resource_locks import find_busy_lock_key
from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.backoff import delay_ms
from orchestrator.core.common.frozen_model import FrozenModel, with_entry, without_keys
from orchestrator.core.common.run_status import ENDINGS, TerminalClass, TerminalCode
from orchestrator.core.compensation import plan as undoing
from orchestrator.core.domain.call_outcomes import Fate
from orchestrator.core.domain.effects import SetTimer
from orchestrator.core.domain.run_events import (
    AnyEvent,
    GateDecided,
    GateExpired,
    Recovered,
    ToolAnswered,
    ToolFailed,
)
from orchestrator.core.domain.run_state import Call, CompensationState, PendingInterrupt, RunState, SideEffect
from orchestrator.core.results.termination import end_run, force_run_end
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.goal_inputs import MISSING, is_same_value, resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    ApprovalExpired,
    BreakerTripped,
    CallObserved,
    CallRecovered,
    CallRequested,
    CallVerified,
    DeedLeft,
    DeedUndone,
    RetryScheduled,
    UnwindingBegan,
    UnwindingEnded,
)
from traces.core.integrity.chain import TraceEntry

ORDINAL = 60
OPEN = ("done", "in_doubt", "open")


class Config(FrozenModel):
    """No settings: the boundary decides whether people are asked."""


def begin_compensation(
    view: NodeContext, code: TerminalCode, halting: PendingInterrupt | None = None
) -> NodeResult | None:
    """Return the first step of the compensation; None if the run may end at once."""
    state = view.state
    deeds = sum(deed.standing in OPEN for deed in state.deeds.values())
    if not deeds or ENDINGS[code].terminal_class is TerminalClass.COMMIT:
        return None
    body = UnwindingBegan(terminal_code=code.value, deeds=deeds, mode=view.pins.boundary.compensation)
    opened = state.evolve(
        unwinding=CompensationState(code=code, halting=halting), unfinished=state.still_open(),
        batch=(), queue=(), gates={}, timer=None, held=False, away=None,
    )  # fmt: skip
    said = (trace_event(Phase.TERMINATION_CHECK, body), *trace_withdrawn_requests(state, code.value))
    return _start_next_compensation(_with_state(view, opened), said)


class CompensationNode(PlainNode):
    """Takes the place of the run's current node until the compensation is complete."""

    kind: ClassVar[str] = "unwinding"
    outcomes: ClassVar[tuple[str, ...]] = ()
    phases: ClassVar[Mapping[str, Phase]] = {}
    artifact: ClassVar[str] = "compensation record"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Continue after a pause, a signal or a stop."""
        if view.state.pending:
            return NodeResult(state=view.state)
        if view.state.batch and not view.state.gates and not _is_emergency_stopped(view):
            return _send_compensation_call(view, view.state.batch[0], ())
        return (
            NodeResult(state=view.state)
            if view.state.gates and not _is_emergency_stopped(view)
            else _start_next_compensation(view, ())
        )

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """Handle the outcome of an undo, a decision on one, or a due retry."""
        if isinstance(event, GateDecided):
            return _handle_approval_decision(view, event)
        if isinstance(event, GateExpired):
            said = trace_event(Phase.ESCALATION_CHECK, ApprovalExpired(request=event.request))
            shut = _with_state(view, view.state.evolve(gates=without_keys(view.state.gates, event.request)))
            return _skip_side_effect(shut, undoing.NOBODY, (said,))
        if isinstance(event, ToolAnswered):
            return _handle_tool_answer(view, event.effect, event.observation, event.size)
        if isinstance(event, ToolFailed):
            return _handle_tool_failure(view, event)
        if isinstance(event, Recovered):
            return _handle_recovery(view, event)
        if event.kind == "timer_fired":
            due = view.state.timer is not None and view.at >= view.state.timer
            return self.enter(view) if due else NodeResult(state=view.state)
        raise UnexpectedEvent(node=view.node.id, event=event.kind)


KIND = CompensationNode()


# -- order of compensation
# ---------------------------------------------------------------------------------------


def _with_state(view: NodeContext, state: RunState) -> NodeContext:
    return view._replace(state=state)


def _is_emergency_stopped(view: NodeContext) -> bool:
    halting = view.state.halting
    return halting is not None and halting.stop


def _start_next_compensation(view: NodeContext, said: tuple[TraceEntry, ...]) -> NodeResult:
    """Start to undo the newest side effect that is left; end the run if there is none."""
    state = view.state
    if _is_emergency_stopped(view):
        return _stop_compensation(view, said)
    found = next(((key, deed) for key, deed in newest_first(state) if deed.standing in OPEN), None)
    if found is None:
        return _finish_compensation(view, said)
    if state.paused or view.headroom.slice_over:
        return NodeResult(state=state.evolve(held=True), said=said)
    key, deed = found
    assert state.unwinding is not None
    taken = without_undo_reserve(state, deed).evolve(
        unwinding=state.unwinding.evolve(call=key), batch=(), timer=None
    )
    view = _with_state(view, taken)
    plan = undoing.plan_compensation(view, key, deed)
    if view.pins.boundary.compensation == "report" and not isinstance(plan, str):
        plan = undoing.REPORTED
    if isinstance(plan, str):
        return _skip_side_effect(view, plan, said)
    if forbidden := undoing.explain_policy_denial(view, plan.call):
        return _skip_side_effect(view, undoing.DENIED, said, forbidden)
    assert plan.call.arguments is not None
    asked = CallRequested(
        call=plan.call.id, tool=plan.call.tool, arguments=plan.call.arguments, ordinal=0, by="undo"
    )
    return _begin_one(view, plan, (*said, trace_event(Phase.ACTION_SELECTION, asked)))


def _begin_one(view: NodeContext, plan: undoing.Plan, said: tuple[TraceEntry, ...]) -> NodeResult:
    """Request approval if it is needed; otherwise send the call."""
    if not undoing.needs_compensation_approval(view, plan):
        return _send_compensation_call(view, plan.call, said)
    asked = ask_leave(view, view.state, plan.call)
    return NodeResult(state=asked.state, said=(*said, *asked.said), effects=asked.effects)


def _send_compensation_call(view: NodeContext, call: Call, said: tuple[TraceEntry, ...]) -> NodeResult:
    """Write the intent of the next attempt, if the run has the budget for it."""
    if view.state.paused or view.headroom.slice_over:
        return NodeResult(state=view.state.evolve(held=True, batch=(call,), timer=None), said=said)
    if forbidden := undoing.explain_policy_denial(view, call):
        return _skip_side_effect(view, undoing.DENIED, said, forbidden)
    if call.grant is not None and call.grant.request in view.headroom.void:
        asked = ask_leave(view, view.state, call.evolve(grant=None))
        return NodeResult(state=asked.state, said=(*said, *asked.said), effects=asked.effects)
    if find_busy_lock_key(view, view.pins.by_name[call.tool], call) is not None:
        return _schedule_compensation_retry(view, call, "conflict", said, None)
    deed = view.state.deeds[_get_current_effect_key(view)]
    room = undo_room(view.pins, view.pins.by_name[deed.tool])
    if find_budget_shortfall(view.state, (room,), view.headroom) is not None:
        return _skip_side_effect(view, undoing.NO_BUDGET, said)
    attempt = call.evolve(attempt=call.attempt + 1, rung="attempted")
    sent = launch_call(view, view.state.evolve(batch=(attempt,)), attempt, ORDINAL, undoes=True)
    return NodeResult(state=sent.state, said=(*said, *sent.said), effects=sent.effects)


def _get_current_effect_key(view: NodeContext) -> str:
    assert view.state.unwinding is not None
    return view.state.unwinding.call


def _skip_side_effect(
    view: NodeContext, why: str, said: tuple[TraceEntry, ...], detail: str = ""
) -> NodeResult:
    """Leave the side effect in place and continue with the next one.

    Operators are notified of every reason that is not a choice (`BY_CHOICE`).
    """
    state, key = view.state, _get_current_effect_key(view)
    deed = state.deeds[key]
    words = [
        *said,
        trace_event(Phase.TERMINATION_CHECK, DeedLeft(call=key, tool=deed.tool, why=why, detail=detail)),
    ]
    if why not in undoing.BY_CHOICE:
        tripped = BreakerTripped(breaker="compensation", reason=why, subject=deed.tool)
        words.append(trace_event(Phase.ESCALATION_CHECK, tripped))
    left = deed.evolve(standing="left", why=why)
    return _start_next_compensation(
        _with_state(view, state.evolve(deeds=with_entry(state.deeds, key, left), batch=())), tuple(words)
    )


def _stop_compensation(view: NodeContext, said: tuple[TraceEntry, ...]) -> NodeResult:
    """Leave all remaining side effects in place: nothing is called under an emergency stop."""
    state, words = view.state, [*said, *trace_withdrawn_requests(view.state, "emergency stop")]
    for key, deed in newest_first(state):
        if deed.standing in OPEN:
            why = undoing.STOPPED
            words.append(trace_event(Phase.TERMINATION_CHECK, DeedLeft(call=key, tool=deed.tool, why=why)))
            left = deed.evolve(standing="left", why=why)
            state = state.evolve(deeds=with_entry(state.deeds, key, left))
    return _finish_compensation(_with_state(view, state.evolve(batch=(), gates={})), tuple(words))


def _finish_compensation(view: NodeContext, said: tuple[TraceEntry, ...]) -> NodeResult:
    """Finish the compensation and take the postponed end of the run."""
    state = view.state
    assert state.unwinding is not None
    standing = [deed.standing for deed in state.deeds.values()]
    body = UnwindingEnded(undone=standing.count("undone"), left=standing.count("left"))
    code, halting = state.unwinding.code, state.unwinding.halting
    rested = _with_state(view, state.evolve(unwinding=None, batch=(), timer=None))
    end = end_run(rested, code) if halting is None else force_run_end(rested, code, halting)
    words = (*said, trace_event(Phase.TERMINATION_CHECK, body), *end.said)
    return NodeResult(state=end.state, said=words, effects=end.effects)


# -- outcome of one compensating call
# ------------------------------------------------------------------------------------------


def _handle_approval_decision(view: NodeContext, event: GateDecided) -> NodeResult:
    said = (decided_said(event),)
    shut = _with_state(view, view.state.evolve(gates=without_keys(view.state.gates, event.request)))
    if event.decision not in ("approve", "edit"):
        return _skip_side_effect(shut, undoing.REJECTED, said)
    return _send_compensation_call(shut, with_call_grant(shut, shut.state.batch[0], event), said)


def _handle_tool_answer(view: NodeContext, effect: str, observation: str | None, size: int) -> NodeResult:
    """Handle an answer: of the undo, or of the read-back that checks it."""
    call = view.state.batch[0]
    reading = call.rung == "observed"
    status = "read_back" if reading else "ok"
    body = CallObserved(call=call.id, effect=effect, status=status, observation=observation, size=size)
    said = (trace_event(Phase.OBSERVATION_GROUNDING, body),)
    if reading:
        verdict, detail = compare_read_back(view, call, observation or "")
        return _handle_verdict(view, call, verdict, detail, said)
    seen = call.evolve(rung="observed", observation=observation)
    fault = _explain_result_mismatch(view, seen)
    if fault:
        return _handle_verdict(view, seen, "failed", fault, said)
    verifier = view.pins.by_name[call.tool].verifier
    if verifier is None or verifier.read_back is None:
        return _handle_verdict(view, seen, "observed_only" if verifier is None else "verified", "", said)
    asked = read_back(view, view.state.evolve(batch=(seen,)), seen, 1)
    return NodeResult(state=asked.state, said=said + asked.said, effects=asked.effects)


def _explain_result_mismatch(view: NodeContext, call: Call) -> str:
    """Explain what is wrong with the answer of an undo; empty if the answer is as declared."""
    spec = view.pins.by_name[call.tool]
    assert call.observation is not None
    assert call.arguments is not None
    try:
        value = orjson.loads(view.desk.read(call.observation))
    except orjson.JSONDecodeError:
        return "the result is not JSON"
    if (fault := validate_against_schema(spec.output_schema, value)) is not None:
        return f"parser drift: {fault.detail}"[:300]
    document = {"arguments": view.desk.json(call.arguments), "result": value}
    for left, right in (spec.verifier.equal if spec.verifier is not None else {}).items():
        found = resolve_pointer(document, left)
        if found is MISSING or not is_same_value(found, resolve_pointer(document, right)):
            return f"differs: {left}"
    return ""


def _handle_verdict(
    view: NodeContext, call: Call, verdict: str, detail: str, said: tuple[TraceEntry, ...]
) -> NodeResult:
    spec = view.pins.by_name[call.tool]
    validator = spec.verifier.name if spec.verifier is not None else "schema"
    checked = CallVerified(call=call.id, validator=validator, verdict=verdict, detail=detail[:300])  # type: ignore[arg-type]
    words = (*said, trace_event(Phase.OBSERVATION_GROUNDING, checked))
    if verdict not in ("verified", "observed_only"):
        return _skip_side_effect(view, undoing.UNVERIFIED, words, detail[:300])
    state, key = view.state, _get_current_effect_key(view)
    deed = state.deeds[key]
    wanted = _describe_expected_outcome(view, deed, call)
    body = DeedUndone(call=key, tool=deed.tool, by=call.tool, undone_by=call.id, wanted=wanted)
    undone = deed.evolve(standing="undone", why=wanted)
    on = state.evolve(deeds=with_entry(state.deeds, key, undone), batch=())
    return _start_next_compensation(_with_state(view, on), (*words, trace_event(Phase.STATE_UPDATE, body)))


def _describe_expected_outcome(view: NodeContext, deed: SideEffect, call: Call) -> str:
    way = view.pins.by_name[deed.tool].compensation
    arguments = view.desk.json(call.arguments or "")
    return undoing.fill_outcome_template(way.wanted if way is not None else "", arguments)


def _handle_tool_failure(view: NodeContext, event: ToolFailed) -> NodeResult:
    call = view.state.batch[0]
    body = CallObserved(
        call=call.id, effect=event.effect, status=event.error, observation=event.detail, size=0
    )
    said = (trace_event(Phase.OBSERVATION_GROUNDING, body),)
    if call.rung == "observed":
        return _handle_verdict(view, call, "low_confidence", f"the reader failed: {event.error}", said)
    spec = view.pins.by_name[call.tool]
    safe = not event.sent or spec.honours_keys
    if event.transient and safe and call.attempt <= spec.max_retries and not _is_emergency_stopped(view):
        return _schedule_compensation_retry(view, call, event.error, said, event.retry_after_ms)
    sure = classify_call_failure(view, call, event) is Fate.FAILED
    return _skip_side_effect(view, undoing.CALL_FAILED if sure else undoing.UNANSWERED, said, event.error)


def _handle_recovery(view: NodeContext, event: Recovered) -> NodeResult:
    call = view.state.batch[0]
    body = CallRecovered(effect=event.effect, resolution=event.resolution, detail=event.detail)
    said = (trace_event(Phase.OBSERVATION_GROUNDING, body),)
    if event.resolution == "found":
        step = _handle_tool_answer(view, event.effect, event.observation, event.size)
        return step._replace(said=said + step.said)
    spec = view.pins.by_name[call.tool]
    again = event.resolution == "abandoned" or spec.honours_keys
    if again and call.attempt <= spec.max_retries and not _is_emergency_stopped(view):
        return _schedule_compensation_retry(view, call, event.resolution, said, 0)
    return _skip_side_effect(view, undoing.UNANSWERED, said)


def _schedule_compensation_retry(
    view: NodeContext, call: Call, cause: str, said: tuple[TraceEntry, ...], wish_ms: int | None
) -> NodeResult:
    """Schedule another attempt under the same key; a tool that honours keys performs it only once."""
    wait = delay_ms(max(call.attempt, 1), call.id + str(view.manifest.run), wish_ms)
    timer = SetTimer(id=view.effect_id(0, call.attempt), due=view.at + timedelta(milliseconds=wait))
    body = RetryScheduled(effect=call.id, attempt=call.attempt + 1, delay_ms=wait, cause=cause)
    waiting = view.state.evolve(batch=(call.evolve(effect=None, error=cause),), timer=timer.due)
    return NodeResult(
        state=waiting, said=(*said, trace_event(Phase.OBSERVATION_GROUNDING, body)), effects=(timer,)
    )

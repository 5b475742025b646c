"""Undoing what a run did before it ends without its result (R-TOOL-15).

Whatever leads a run to a failure or a halt, it ends only once each thing it did was taken back, newest first,
or left to people with the reason. Each undo is a call like any other: written ahead, keyed, recovered after a
crash, verified. One that fails keeps none of the others from being made. An emergency stop ends it at once.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

import orjson

from orchestrator.core.accounting.effect_cost import shortfall
from orchestrator.core.accounting.side_effects import newest_first, released, undo_room
from orchestrator.core.approval.compensation_approval import ask_leave, decided_said, granted, withdrawn
from orchestrator.core.calls.invocation import fate, launch
from orchestrator.core.calls.read_back import agrees, read_back
from orchestrator.core.calls.resource_locks import taken
from orchestrator.core.common.argument_parsing import fits
from orchestrator.core.common.backoff import delay_ms
from orchestrator.core.common.errors import Misfit
from orchestrator.core.common.frozen_model import Value, with_entry, without
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
from orchestrator.core.domain.run_state import Call, Deed, Halting, State, Unwinding
from orchestrator.core.results.termination import ended, forced
from orchestrator.core.workflow.goal_inputs import MISSING, pointed, same
from orchestrator.core.workflow.node_protocol import Step, View, say
from orchestrator.core.workflow.plain_node import Plain
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
from traces.core.integrity.chain import Said

ORDINAL = 60
OPEN = ("done", "in_doubt", "open")


class Config(Value):
    """Nothing to set: the boundary says whether people are asked."""


def begin(view: View, code: TerminalCode, halting: Halting | None = None) -> Step | None:
    """The first step of a run's way back; None where it may end at once."""
    state = view.state
    deeds = sum(deed.standing in OPEN for deed in state.deeds.values())
    if not deeds or ENDINGS[code].terminal_class is TerminalClass.COMMIT:
        return None
    body = UnwindingBegan(terminal_code=code.value, deeds=deeds, mode=view.pins.boundary.compensation)
    opened = state.evolve(
        unwinding=Unwinding(code=code, halting=halting), unfinished=state.still_open(),
        batch=(), queue=(), gates={}, timer=None, held=False, away=None,
    )  # fmt: skip
    said = (say(Phase.TERMINATION_CHECK, body), *withdrawn(state, code.value))
    return _next(_with(view, opened), said)


class Unwind(Plain):
    """Stands in for the node where the run is, until everything is seen to."""

    kind: ClassVar[str] = "unwinding"
    outcomes: ClassVar[tuple[str, ...]] = ()
    phases: ClassVar[Mapping[str, Phase]] = {}
    artifact: ClassVar[str] = "compensation record"
    config: ClassVar[type[Value]] = Config

    def enter(self, view: View) -> Step:
        """Go on after a pause, a signal, or a stop."""
        if view.state.pending:
            return Step(state=view.state)
        if view.state.batch and not view.state.gates and not _stopped(view):
            return _send(view, view.state.batch[0], ())
        return Step(state=view.state) if view.state.gates and not _stopped(view) else _next(view, ())

    def on(self, view: View, event: AnyEvent) -> Step:
        """What came of an undo, people's word on one, or the time to try again."""
        if isinstance(event, GateDecided):
            return _decided(view, event)
        if isinstance(event, GateExpired):
            said = say(Phase.ESCALATION_CHECK, ApprovalExpired(request=event.request))
            shut = _with(view, view.state.evolve(gates=without(view.state.gates, event.request)))
            return _leave(shut, undoing.NOBODY, (said,))
        if isinstance(event, ToolAnswered):
            return _answered(view, event.effect, event.observation, event.size)
        if isinstance(event, ToolFailed):
            return _failed(view, event)
        if isinstance(event, Recovered):
            return _recovered(view, event)
        if event.kind == "timer_fired":
            due = view.state.timer is not None and view.at >= view.state.timer
            return self.enter(view) if due else Step(state=view.state)
        raise Misfit(node=view.node.id, event=event.kind)


KIND = Unwind()


# -- one after the other
# ---------------------------------------------------------------------------------------


def _with(view: View, state: State) -> View:
    return view._replace(state=state)


def _stopped(view: View) -> bool:
    halting = view.state.halting
    return halting is not None and halting.stop


def _next(view: View, said: tuple[Said, ...]) -> Step:
    """Take up the newest deed that still stands; end the run when none does."""
    state = view.state
    if _stopped(view):
        return _stop(view, said)
    found = next(((key, deed) for key, deed in newest_first(state) if deed.standing in OPEN), None)
    if found is None:
        return _over(view, said)
    if state.paused or view.headroom.slice_over:
        return Step(state=state.evolve(held=True), said=said)
    key, deed = found
    assert state.unwinding is not None
    taken = released(state, deed).evolve(unwinding=state.unwinding.evolve(call=key), batch=(), timer=None)
    view = _with(view, taken)
    plan = undoing.planned(view, key, deed)
    if view.pins.boundary.compensation == "report" and not isinstance(plan, str):
        plan = undoing.REPORTED
    if isinstance(plan, str):
        return _leave(view, plan, said)
    if forbidden := undoing.denied(view, plan.call):
        return _leave(view, undoing.DENIED, said, forbidden)
    assert plan.call.arguments is not None
    asked = CallRequested(
        call=plan.call.id, tool=plan.call.tool, arguments=plan.call.arguments, ordinal=0, by="undo"
    )
    return _begin_one(view, plan, (*said, say(Phase.ACTION_SELECTION, asked)))


def _begin_one(view: View, plan: undoing.Plan, said: tuple[Said, ...]) -> Step:
    """Ask people, or send."""
    if not undoing.asks(view, plan):
        return _send(view, plan.call, said)
    asked = ask_leave(view, view.state, plan.call)
    return Step(state=asked.state, said=(*said, *asked.said), effects=asked.effects)


def _send(view: View, call: Call, said: tuple[Said, ...]) -> Step:
    """Write the intent of the next attempt, where the run has what it takes."""
    if view.state.paused or view.headroom.slice_over:
        return Step(state=view.state.evolve(held=True, batch=(call,), timer=None), said=said)
    if forbidden := undoing.denied(view, call):
        return _leave(view, undoing.DENIED, said, forbidden)
    if call.grant is not None and call.grant.request in view.headroom.void:
        asked = ask_leave(view, view.state, call.evolve(grant=None))
        return Step(state=asked.state, said=(*said, *asked.said), effects=asked.effects)
    if taken(view, view.pins.by_name[call.tool], call) is not None:
        return _later(view, call, "conflict", said, None)
    deed = view.state.deeds[_key(view)]
    room = undo_room(view.pins, view.pins.by_name[deed.tool])
    if shortfall(view.state, (room,), view.headroom) is not None:
        return _leave(view, undoing.NO_BUDGET, said)
    attempt = call.evolve(attempt=call.attempt + 1, rung="attempted")
    sent = launch(view, view.state.evolve(batch=(attempt,)), attempt, ORDINAL, undoes=True)
    return Step(state=sent.state, said=(*said, *sent.said), effects=sent.effects)


def _key(view: View) -> str:
    assert view.state.unwinding is not None
    return view.state.unwinding.call


def _leave(view: View, why: str, said: tuple[Said, ...], detail: str = "") -> Step:
    """The deed stands. What nobody chose is told to operators; the rest goes on."""
    state, key = view.state, _key(view)
    deed = state.deeds[key]
    words = [*said, say(Phase.TERMINATION_CHECK, DeedLeft(call=key, tool=deed.tool, why=why, detail=detail))]
    if why not in undoing.BY_CHOICE:
        tripped = BreakerTripped(breaker="compensation", reason=why, subject=deed.tool)
        words.append(say(Phase.ESCALATION_CHECK, tripped))
    left = deed.evolve(standing="left", why=why)
    return _next(_with(view, state.evolve(deeds=with_entry(state.deeds, key, left), batch=())), tuple(words))


def _stop(view: View, said: tuple[Said, ...]) -> Step:
    """Nothing is called under an emergency stop: all that stands is left."""
    state, words = view.state, [*said, *withdrawn(view.state, "emergency stop")]
    for key, deed in newest_first(state):
        if deed.standing in OPEN:
            why = undoing.STOPPED
            words.append(say(Phase.TERMINATION_CHECK, DeedLeft(call=key, tool=deed.tool, why=why)))
            left = deed.evolve(standing="left", why=why)
            state = state.evolve(deeds=with_entry(state.deeds, key, left))
    return _over(_with(view, state.evolve(batch=(), gates={})), tuple(words))


def _over(view: View, said: tuple[Said, ...]) -> Step:
    """All is seen to: the end that was put off."""
    state = view.state
    assert state.unwinding is not None
    standing = [deed.standing for deed in state.deeds.values()]
    body = UnwindingEnded(undone=standing.count("undone"), left=standing.count("left"))
    code, halting = state.unwinding.code, state.unwinding.halting
    rested = _with(view, state.evolve(unwinding=None, batch=(), timer=None))
    end = ended(rested, code) if halting is None else forced(rested, code, halting)
    words = (*said, say(Phase.TERMINATION_CHECK, body), *end.said)
    return Step(state=end.state, said=words, effects=end.effects)


# -- what came of one
# ------------------------------------------------------------------------------------------


def _decided(view: View, event: GateDecided) -> Step:
    said = (decided_said(event),)
    shut = _with(view, view.state.evolve(gates=without(view.state.gates, event.request)))
    if event.decision not in ("approve", "edit"):
        return _leave(shut, undoing.REJECTED, said)
    return _send(shut, granted(shut, shut.state.batch[0], event), said)


def _answered(view: View, effect: str, observation: str | None, size: int) -> Step:
    """An answer: of the undo, or of the reader that looks whether it stands."""
    call = view.state.batch[0]
    reading = call.rung == "observed"
    status = "read_back" if reading else "ok"
    body = CallObserved(call=call.id, effect=effect, status=status, observation=observation, size=size)
    said = (say(Phase.OBSERVATION_GROUNDING, body),)
    if reading:
        verdict, detail = agrees(view, call, observation or "")
        return _judged(view, call, verdict, detail, said)
    seen = call.evolve(rung="observed", observation=observation)
    fault = _misfit(view, seen)
    if fault:
        return _judged(view, seen, "failed", fault, said)
    verifier = view.pins.by_name[call.tool].verifier
    if verifier is None or verifier.read_back is None:
        return _judged(view, seen, "observed_only" if verifier is None else "verified", "", said)
    asked = read_back(view, view.state.evolve(batch=(seen,)), seen, 1)
    return Step(state=asked.state, said=said + asked.said, effects=asked.effects)


def _misfit(view: View, call: Call) -> str:
    """What is wrong with the answer of an undo; empty where it is as declared."""
    spec = view.pins.by_name[call.tool]
    assert call.observation is not None
    assert call.arguments is not None
    try:
        value = orjson.loads(view.desk.read(call.observation))
    except orjson.JSONDecodeError:
        return "the result is not JSON"
    if (fault := fits(spec.output_schema, value)) is not None:
        return f"parser drift: {fault.detail}"[:300]
    document = {"arguments": view.desk.json(call.arguments), "result": value}
    for left, right in (spec.verifier.equal if spec.verifier is not None else {}).items():
        found = pointed(document, left)
        if found is MISSING or not same(found, pointed(document, right)):
            return f"differs: {left}"
    return ""


def _judged(view: View, call: Call, verdict: str, detail: str, said: tuple[Said, ...]) -> Step:
    spec = view.pins.by_name[call.tool]
    validator = spec.verifier.name if spec.verifier is not None else "schema"
    checked = CallVerified(call=call.id, validator=validator, verdict=verdict, detail=detail[:300])  # type: ignore[arg-type]
    words = (*said, say(Phase.OBSERVATION_GROUNDING, checked))
    if verdict not in ("verified", "observed_only"):
        return _leave(view, undoing.UNVERIFIED, words, detail[:300])
    state, key = view.state, _key(view)
    deed = state.deeds[key]
    wanted = _wanted(view, deed, call)
    body = DeedUndone(call=key, tool=deed.tool, by=call.tool, undone_by=call.id, wanted=wanted)
    undone = deed.evolve(standing="undone", why=wanted)
    on = state.evolve(deeds=with_entry(state.deeds, key, undone), batch=())
    return _next(_with(view, on), (*words, say(Phase.STATE_UPDATE, body)))


def _wanted(view: View, deed: Deed, call: Call) -> str:
    way = view.pins.by_name[deed.tool].compensation
    arguments = view.desk.json(call.arguments or "")
    return undoing.sentence(way.wanted if way is not None else "", arguments)


def _failed(view: View, event: ToolFailed) -> Step:
    call = view.state.batch[0]
    body = CallObserved(
        call=call.id, effect=event.effect, status=event.error, observation=event.detail, size=0
    )
    said = (say(Phase.OBSERVATION_GROUNDING, body),)
    if call.rung == "observed":
        return _judged(view, call, "low_confidence", f"the reader failed: {event.error}", said)
    spec = view.pins.by_name[call.tool]
    safe = not event.sent or spec.honours_keys
    if event.transient and safe and call.attempt <= spec.max_retries and not _stopped(view):
        return _later(view, call, event.error, said, event.retry_after_ms)
    sure = fate(view, call, event) is Fate.FAILED
    return _leave(view, undoing.CALL_FAILED if sure else undoing.UNANSWERED, said, event.error)


def _recovered(view: View, event: Recovered) -> Step:
    call = view.state.batch[0]
    body = CallRecovered(effect=event.effect, resolution=event.resolution, detail=event.detail)
    said = (say(Phase.OBSERVATION_GROUNDING, body),)
    if event.resolution == "found":
        step = _answered(view, event.effect, event.observation, event.size)
        return step._replace(said=said + step.said)
    spec = view.pins.by_name[call.tool]
    again = event.resolution == "abandoned" or spec.honours_keys
    if again and call.attempt <= spec.max_retries and not _stopped(view):
        return _later(view, call, event.resolution, said, 0)
    return _leave(view, undoing.UNANSWERED, said)


def _later(view: View, call: Call, cause: str, said: tuple[Said, ...], wish_ms: int | None) -> Step:
    """Try again after a while, under the same key: whoever honours it does it once."""
    wait = delay_ms(max(call.attempt, 1), call.id + str(view.manifest.run), wish_ms)
    timer = SetTimer(id=view.effect_id(0, call.attempt), due=view.at + timedelta(milliseconds=wait))
    body = RetryScheduled(effect=call.id, attempt=call.attempt + 1, delay_ms=wait, cause=cause)
    waiting = view.state.evolve(batch=(call.evolve(effect=None, error=cause),), timer=timer.due)
    return Step(state=waiting, said=(*said, say(Phase.OBSERVATION_GROUNDING, body)), effects=(timer,))

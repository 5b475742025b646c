"""capture_observation: store each result as it came, failures included (phase 10, rung 3; R-LOOP-7).

Safe calls with a transient failure are retried. The table in orchestrator/core/domain/call_outcomes.py
decides about a change without a result (R-TOOL-9, R-TOOL-10).
"""

from datetime import timedelta
from decimal import Decimal
from typing import ClassVar

from orchestrator.core.accounting import side_effects
from orchestrator.core.approval.reconciliation import (
    ask_reconciliation,
    ask_what_became,
    resolve_reconciliation,
)
from orchestrator.core.calls.authorization import CallAuthorizer
from orchestrator.core.calls.invocation import (
    classify_call_failure,
    launch_call,
    may_repeat,
    with_updated_call,
)
from orchestrator.core.calls.open_effects import open_of, record_open_effect, settle_open_effect
from orchestrator.core.calls.resource_locks import find_busy_lock_key, wait_for_resource_lock
from orchestrator.core.common.backoff import delay_ms
from orchestrator.core.common.frozen_model import without_keys
from orchestrator.core.domain.call_outcomes import Fate, LookUpMiss
from orchestrator.core.domain.effects import Effect, SetTimer
from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_events import (
    LOOKED,
    AnyEvent,
    GateDecided,
    GateExpired,
    Recovered,
    TimerFired,
    ToolAnswered,
    ToolFailed,
)
from orchestrator.core.domain.run_state import Call, RunState, UnreadAnswer
from orchestrator.core.tools.schema_drift import CUT, drift_said
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.node_protocol import (
    NodeContext,
    NodeResult,
    make_interrupt_result,
    trace_event,
)
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    ApprovalExpired,
    BreakerTripped,
    CallObserved,
    CallRecovered,
    RetryScheduled,
    RunPaused,
)
from traces.core.integrity.chain import TraceEntry

SETTLED = ("observed", "failed")


class CaptureObservation(PlainNode):
    kind: ClassVar[str] = "capture_observation"
    outcomes: ClassVar[tuple[str, ...]] = ("captured",)
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.OBSERVATION_GROUNDING)
    artifact: ClassVar[str] = "raw tool output payload"

    def enter(self, view: NodeContext) -> NodeResult:
        """Wait for every call of the batch.

        A run that was held here continues with the calls that wait for an attempt.
        """
        if not view.state.pending and any(_is_awaiting_retry(call) for call in view.state.batch):
            return self._launch_waiting(view)
        return NodeResult(state=view.state)

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """Handle a result, a failure, a recovery, a person's decision on what happened, or a retry timer."""
        if isinstance(event, ToolAnswered):
            return self._handle_answer(view, event)
        if isinstance(event, ToolFailed):
            return self._handle_failure(view, event)
        if isinstance(event, Recovered):
            return self._handle_recovery(view, event)
        if isinstance(event, TimerFired):
            return self._try_again(view)
        if isinstance(event, GateDecided):
            return self._handle_decision(view, event)
        if isinstance(event, GateExpired):
            return self._handle_expiry(view, event)
        raise UnexpectedEvent(node=view.node.id, event=event.kind)

    # -- what came back
    # ------------------------------------------------------------------------------------------

    def _handle_answer(self, view: NodeContext, event: ToolAnswered) -> NodeResult:
        call = self._call(view, event.effect)
        body = CallObserved(
            call=call.id,
            effect=event.effect,
            status="ok",
            observation=event.observation,
            size=event.size,
            request_id=event.request_id[:200],
            truncated=event.truncated,
            code=event.status,
            whole=event.whole,
        )
        observed = call.evolve(rung="observed", observation=event.observation, error=None)
        if event.truncated:
            cut = UnreadAnswer(size=event.size, whole=event.whole, status=event.status, fault=CUT)
            observed = observed.evolve(unread=cut)
        state = side_effects.with_side_effect(
            view, self._with(view.state, observed), observed, event.observation
        )
        return self._go_on(view, state, (self._said(body),))

    def _handle_failure(self, view: NodeContext, event: ToolFailed) -> NodeResult:
        call = self._call(view, event.effect)
        body = CallObserved(
            call=call.id, effect=event.effect, status=event.error, observation=event.detail, size=0
        )
        said: tuple[TraceEntry, ...] = (self._said(body),)
        became = classify_call_failure(view, call, event)
        if became is Fate.IN_DOUBT:
            return self._request_reconciliation(view, call, event.effect, said)
        if became is Fate.REPEAT or may_repeat(view, call, transient=event.transient, sent=event.sent):
            # effect None marks a call that waits for its next attempt.
            waiting = _with_unsent_attempt(call, sent=event.sent)
            waiting = waiting.evolve(effect=None, error=event.error, observation=event.detail)
            state, words = self._left_open(view, call, event.error, became, event.look)
            return self._go_on(view, self._with(state, waiting), said + words, event.retry_after_ms)
        if became is not Fate.OPEN and _is_credential_expired(view, call, event.error):
            # Nothing was done. Renewing the secret resumes the run, and the call is made then.
            waiting = _with_unsent_attempt(call, sent=event.sent)
            waiting = waiting.evolve(effect=None, error=event.error, observation=event.detail)
            why = RunPaused(reason=f"{event.error}:{call.tool}", by="interlock")
            state = self._with(view.state, waiting).evolve(paused=True)
            return self._go_on(view, state, (*said, trace_event(Phase.TERMINATION_CHECK, why)))
        if event.transient and call.attempt > 1:
            tripped = BreakerTripped(
                breaker="retry_storm",
                reason=event.error,
                subject=call.tool,
                limit=Decimal(call.attempt - 1),
                actual=Decimal(call.attempt),
            )
            said += (trace_event(Phase.ESCALATION_CHECK, tripped),)
        failed = call.evolve(rung="failed", error=event.error, observation=event.detail, sent=event.sent)
        state, words = self._left_open(view, failed, event.error, became, event.look)
        return self._go_on(view, self._with(state, failed), said + words)

    def _left_open(
        self, view: NodeContext, call: Call, error: str, became: Fate, look: LookUpMiss
    ) -> tuple[RunState, tuple[TraceEntry, ...]]:
        """Return the state with an open effect recorded if it is unknown what the call did."""
        if became in (Fate.OPEN, Fate.REPEAT):
            return record_open_effect(view, view.state, call, error)
        return (
            settle_open_effect(view.state, call, "absent") if look is LookUpMiss.ABSENT else (view.state, ())
        )

    def _request_reconciliation(
        self, view: NodeContext, call: Call, effect: str, said: tuple[TraceEntry, ...]
    ) -> NodeResult:
        """Ask a person about the outcome of a call."""
        asked = ask_reconciliation(view, call, effect)
        state, words = record_open_effect(
            view, side_effects.with_doubtful_effect(view, asked.state, call), call, "in_doubt"
        )
        return NodeResult(state=state, said=said + words + asked.said, effects=asked.effects)

    def _handle_recovery(self, view: NodeContext, event: Recovered) -> NodeResult:
        call = self._call(view, event.effect)
        body = CallRecovered(effect=event.effect, resolution=event.resolution, detail=event.detail)
        said: tuple[TraceEntry, ...] = (self._said(body),)
        if event.unread is not None:
            call, words = self._unread(view, call, event, event.unread)
            said = words + said
        if event.resolution == "found":
            seen = CallObserved(
                call=call.id,
                effect=event.effect,
                status="found",
                observation=event.observation,
                size=event.size,
            )
            observed = call.evolve(rung="observed", observation=event.observation, error=None)
            state = side_effects.with_side_effect(
                view, self._with(view.state, observed), observed, event.observation
            )
            return self._go_on(view, state, (*said, self._said(seen)))
        if event.resolution == "abandoned" and event.detail.startswith(LOOKED):
            # A look-up that finds nothing under the call's key also rules out the call's earlier requests.
            absent, words = settle_open_effect(view.state, call, "absent")
            view, said = view._replace(state=absent), said + words
        if event.resolution == "abandoned" and _sent_enough(view, call, event):
            # No attempt had an effect: the service behind the tool answers with errors and does nothing.
            sends = call.attempt - call.unsent
            tripped = BreakerTripped(
                breaker="retry_storm", reason="abandoned", subject=call.tool, limit=Decimal(sends - 1),
                actual=Decimal(sends),
            )  # fmt: skip
            given_up = self._with(view.state, call.evolve(rung="failed", error="unreachable", sent=False))
            return self._go_on(view, given_up, (*said, trace_event(Phase.ESCALATION_CHECK, tripped)))
        if event.resolution == "abandoned":
            counted = _with_unsent_attempt(call, sent=event.detail.startswith(LOOKED))
            waiting = self._with(view.state, counted.evolve(effect=None, error="abandoned"))
            return self._go_on(view, waiting, said, 0)
        return self._request_reconciliation(view, call, event.effect, said)

    def _unread(
        self, view: NodeContext, call: Call, event: Recovered, unread: UnreadAnswer
    ) -> tuple[Call, tuple[TraceEntry, ...]]:
        """Return the call with an answer that could not be read, which is stored as it came (R-TOOL-14)."""
        body = CallObserved(
            call=call.id,
            effect=event.effect,
            status="unreadable",
            observation=unread.observation,
            size=unread.size,
            truncated=unread.fault == CUT,
            code=unread.status,
            whole=unread.whole,
        )
        kept = call.evolve(unread=unread, observation=unread.observation)
        return kept, (self._said(body), *drift_said(view, kept, unread.fault))

    def _handle_decision(self, view: NodeContext, event: GateDecided) -> NodeResult:
        gate = view.state.gates[event.request]
        call = next(held for held in view.state.batch if held.id == gate.call)
        told, said = resolve_reconciliation(view, call, event)
        state = self._with(view.state, told).evolve(gates=without_keys(view.state.gates, event.request))
        state = side_effects.with_reconciled_effect(view, state, told, event.decision)
        if event.decision != "cancel":
            state, words = settle_open_effect(state, told, "person")
            said += words
        if event.decision == "cancel":
            return make_interrupt_result(state, Interrupt.CANCELLED, "cancelled_in_doubt", said)
        return self._go_on(view, state, said)

    def _handle_expiry(self, view: NodeContext, event: GateExpired) -> NodeResult:
        """Handle the expiry of a reconciliation request without an answer."""
        said = (trace_event(Phase.ESCALATION_CHECK, ApprovalExpired(request=event.request)),)
        state = view.state.evolve(gates=without_keys(view.state.gates, event.request))
        if state.halting is not None:
            # The run is about to end for another reason and waited only for this answer.
            return NodeResult(state=state, interrupt=state.halting, said=said)
        return make_interrupt_result(
            state.evolve(expired=True), Interrupt.EXPIRED, "reconciliation_expired", said
        )

    # -- going on
    # ------------------------------------------------------------------------------------------------

    def _go_on(
        self, view: NodeContext, state: RunState, said: tuple[TraceEntry, ...], wish_ms: int | None = None
    ) -> NodeResult:
        """Wait for pending calls, schedule retries, or finish when every call is settled."""
        if state.pending or state.gates:
            return NodeResult(state=state, said=said)
        if state.halting is not None:
            state = state.evolve(batch=tuple(_without_pending_retry(call) for call in state.batch))
        waiting = [call for call in state.batch if call.rung not in SETTLED]
        if not waiting:
            return NodeResult(state=state.evolve(timer=None), outcome="captured", said=said)
        if state.paused:
            return NodeResult(state=state.evolve(held=True), said=said)
        wait = max(delay_ms(call.attempt, call.id + str(view.manifest.run), wish_ms) for call in waiting)
        timer = SetTimer(id=view.effect_id(0, waiting[0].attempt), due=view.at + timedelta(milliseconds=wait))
        scheduled = tuple(
            self._said(
                RetryScheduled(
                    effect=call.id, attempt=call.attempt + 1, delay_ms=wait, cause=call.error or ""
                )
            )
            for call in waiting
        )
        return NodeResult(state=state.evolve(timer=timer.due), said=said + scheduled, effects=(timer,))

    def _try_again(self, view: NodeContext) -> NodeResult:
        state = view.state
        if state.timer is None or view.at < state.timer:
            return NodeResult(state=state)
        if state.paused:
            return NodeResult(state=state.evolve(held=True, timer=None))
        return self._launch_waiting(view)

    def _launch_waiting(self, view: NodeContext) -> NodeResult:
        """Launch each waiting call again if it may still be made."""
        state = view.state
        if view.headroom.slice_over:
            return NodeResult(state=state.evolve(held=True, timer=None))
        said: list[TraceEntry] = []
        effects: list[Effect] = []
        for ordinal, call in enumerate(state.batch):
            if not _is_awaiting_retry(call):
                continue
            if (key := find_busy_lock_key(view, view.pins.by_name[call.tool], call)) is not None:
                # A call that writes is alone in its batch, so no other call waits for it.
                return wait_for_resource_lock(view, view.state, call, key)
            if (refused := CallAuthorizer(view, call, first=False).still()) is not None:
                if open_of(state, call) is not None:
                    # The call is not sent again, but the outcome of its unanswered request is still unknown.
                    return self._no_more(view, call, refused.said)
                failed = call.evolve(rung="failed", error=refused.verdict, sent=False)
                state = self._with(state, failed)
                said.extend(refused.said)
                continue
            started = launch_call(view, state, call.evolve(attempt=call.attempt + 1), ordinal)
            state = started.state
            said.extend(started.said)
            effects.extend(started.effects)
        state = state.evolve(timer=None)
        if not effects:
            return self._go_on(view, state, tuple(said))
        return NodeResult(state=state, said=tuple(said), effects=tuple(effects))

    def _no_more(self, view: NodeContext, call: Call, said: tuple[TraceEntry, ...]) -> NodeResult:
        asked = ask_what_became(view, call)
        return NodeResult(state=asked.state.evolve(timer=None), said=said + asked.said, effects=asked.effects)

    def _call(self, view: NodeContext, effect: str) -> Call:
        return next(call for call in view.state.batch if call.effect == effect)

    def _with(self, state: RunState, call: Call) -> RunState:
        return state.evolve(batch=with_updated_call(state, call))

    def _said(self, body: CallObserved | CallRecovered | RetryScheduled) -> TraceEntry:
        return trace_event(Phase.OBSERVATION_GROUNDING, body)


def _is_credential_expired(view: NodeContext, call: Call, error: str) -> bool:
    """Return whether a call failed because a credential has expired (R-TOOL-13).

    It has if the error says so, or if the error is `unauthorized` and the tool worked before in this run.
    """
    if view.state.halting is not None:
        return False
    before = any(fact.tool == call.tool for fact in view.state.facts.values())
    return error == "credential_expired" or (error == "unauthorized" and before)


def _sent_enough(view: NodeContext, call: Call, event: Recovered) -> bool:
    """Return whether a call was sent as often as its retry policy allows, and at least twice (R-TOOL-10).

    It is true only if a look-up surely did not find the call. An attempt that a worker did not send is not
    counted.
    """
    if not event.detail.startswith(LOOKED):
        return False
    gauge = view.state.limits.get("retries")
    most = view.pins.by_name[call.tool].max_retries
    return call.attempt - call.unsent > max(1, most if gauge is None else min(most, int(gauge)))


def _with_unsent_attempt(call: Call, *, sent: bool) -> Call:
    """Return the call with an unsent attempt counted."""
    return call if sent else call.evolve(unsent=call.unsent + 1)


def _is_awaiting_retry(call: Call) -> bool:
    return call.rung not in SETTLED and call.rung != "in_doubt" and call.effect is None


def _without_pending_retry(call: Call) -> Call:
    """Return the call as failed if it waits for a retry, in a run that is to be stopped."""
    return call.evolve(rung="failed") if _is_awaiting_retry(call) else call


KIND = CaptureObservation()

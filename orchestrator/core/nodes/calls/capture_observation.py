"""capture_observation: what came back is kept as it came, failures too (phase 10, rung 3; R-LOOP-7).

Safe calls that failed in passing are tried again; what becomes of a change without a result says the table
of orchestrator/core/domain/call_outcomes.py (R-TOOL-9, R-TOOL-10).
"""

from datetime import timedelta
from decimal import Decimal
from typing import ClassVar

from orchestrator.core.accounting import side_effects
from orchestrator.core.approval.reconciliation import ask_reconciliation, ask_what_became, reconciled
from orchestrator.core.calls.authorization import Chain
from orchestrator.core.calls.invocation import fate, launch, may_repeat, replaced
from orchestrator.core.calls.open_effects import noted, open_of, settled
from orchestrator.core.calls.resource_locks import taken, waits
from orchestrator.core.common.backoff import delay_ms
from orchestrator.core.common.errors import Misfit
from orchestrator.core.common.frozen_model import Value, without
from orchestrator.core.domain.call_outcomes import OPEN_SINCE, Fate, Look
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
from orchestrator.core.domain.run_state import Call, State, Unread
from orchestrator.core.tools.schema_drift import CUT, drift_said
from orchestrator.core.workflow.node_protocol import Step, View, interrupted, say
from orchestrator.core.workflow.plain_node import Plain
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    ApprovalExpired,
    BreakerTripped,
    CallObserved,
    CallRecovered,
    RetryScheduled,
    RunPaused,
)
from traces.core.integrity.chain import Said

EXPIRY_SINCE = 3
RESENDS_SINCE = 5
UNSENT_SINCE = 6
SETTLED = ("observed", "failed")


class Config(Value):
    """Nothing to set."""


class CaptureObservation(Plain):
    kind: ClassVar[str] = "capture_observation"
    outcomes: ClassVar[tuple[str, ...]] = ("captured",)
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.OBSERVATION_GROUNDING)
    artifact: ClassVar[str] = "raw tool output payload"
    config: ClassVar[type[Value]] = Config

    def enter(self, view: View) -> Step:
        """Wait for every call of the batch. A run that was held here goes on with the calls that wait for
        an attempt."""
        if not view.state.pending and any(_waits(call) for call in view.state.batch):
            return self._launch_waiting(view)
        return Step(state=view.state)

    def on(self, view: View, event: AnyEvent) -> Step:
        """A result, a failure, a recovery, a person's word on what happened, or the time to try again."""
        if isinstance(event, ToolAnswered):
            return self._answered(view, event)
        if isinstance(event, ToolFailed):
            return self._failed(view, event)
        if isinstance(event, Recovered):
            return self._recovered(view, event)
        if isinstance(event, TimerFired):
            return self._try_again(view)
        if isinstance(event, GateDecided):
            return self._decided(view, event)
        if isinstance(event, GateExpired):
            return self._unanswered(view, event)
        raise Misfit(node=view.node.id, event=event.kind)

    # -- what came back
    # ------------------------------------------------------------------------------------------

    def _answered(self, view: View, event: ToolAnswered) -> Step:
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
        if event.truncated and view.manifest.core_version >= OPEN_SINCE:
            cut = Unread(size=event.size, whole=event.whole, status=event.status, fault=CUT)
            observed = observed.evolve(unread=cut)
        state = side_effects.done(view, self._with(view.state, observed), observed, event.observation)
        return self._go_on(view, state, (self._said(body),))

    def _failed(self, view: View, event: ToolFailed) -> Step:
        call = self._call(view, event.effect)
        body = CallObserved(
            call=call.id, effect=event.effect, status=event.error, observation=event.detail, size=0
        )
        said: tuple[Said, ...] = (self._said(body),)
        became = fate(view, call, event)
        if became is Fate.IN_DOUBT:
            return self._doubted(view, call, event.effect, said)
        if became is Fate.REPEAT or may_repeat(view, call, transient=event.transient, sent=event.sent):
            # effect None marks a call that waits for its next attempt.
            waiting = _counted(view, call, sent=event.sent)
            waiting = waiting.evolve(effect=None, error=event.error, observation=event.detail)
            state, words = self._left_open(view, call, event.error, became, event.look)
            return self._go_on(view, self._with(state, waiting), said + words, event.retry_after_ms)
        if became is not Fate.OPEN and _expired(view, call, event.error):
            # Nothing was done: whoever renews the secret resumes the run, and the call is made then.
            waiting = _counted(view, call, sent=event.sent)
            waiting = waiting.evolve(effect=None, error=event.error, observation=event.detail)
            why = RunPaused(reason=f"{event.error}:{call.tool}", by="interlock")
            state = self._with(view.state, waiting).evolve(paused=True)
            return self._go_on(view, state, (*said, say(Phase.TERMINATION_CHECK, why)))
        if event.transient and call.attempt > 1:
            tripped = BreakerTripped(
                breaker="retry_storm",
                reason=event.error,
                subject=call.tool,
                limit=Decimal(call.attempt - 1),
                actual=Decimal(call.attempt),
            )
            said += (say(Phase.ESCALATION_CHECK, tripped),)
        failed = call.evolve(rung="failed", error=event.error, observation=event.detail, sent=event.sent)
        state, words = self._left_open(view, failed, event.error, became, event.look)
        return self._go_on(view, self._with(state, failed), said + words)

    def _left_open(
        self, view: View, call: Call, error: str, became: Fate, look: Look
    ) -> tuple[State, tuple[Said, ...]]:
        """The state with what a call may have done noted, where that is not known."""
        if became in (Fate.OPEN, Fate.REPEAT):
            return noted(view, view.state, call, error)
        return settled(view.state, call, "absent") if look is Look.ABSENT else (view.state, ())

    def _doubted(self, view: View, call: Call, effect: str, said: tuple[Said, ...]) -> Step:
        """Ask a person what became of a call."""
        asked = ask_reconciliation(view, call, effect)
        state, words = noted(view, side_effects.doubted(view, asked.state, call), call, "in_doubt")
        return Step(state=state, said=said + words + asked.said, effects=asked.effects)

    def _recovered(self, view: View, event: Recovered) -> Step:
        call = self._call(view, event.effect)
        body = CallRecovered(effect=event.effect, resolution=event.resolution, detail=event.detail)
        said: tuple[Said, ...] = (self._said(body),)
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
            state = side_effects.done(view, self._with(view.state, observed), observed, event.observation)
            return self._go_on(view, state, (*said, self._said(seen)))
        if event.resolution == "abandoned" and event.detail.startswith(LOOKED):
            # What it does not find under the call's key was not done by an earlier request of it, either.
            absent, words = settled(view.state, call, "absent")
            view, said = view._replace(state=absent), said + words
        if event.resolution == "abandoned" and _sent_enough(view, call, event):
            # It surely happened at no attempt; what is behind the tool answers errors and does nothing.
            sends = call.attempt - call.unsent
            tripped = BreakerTripped(
                breaker="retry_storm", reason="abandoned", subject=call.tool, limit=Decimal(sends - 1),
                actual=Decimal(sends),
            )  # fmt: skip
            given_up = self._with(view.state, call.evolve(rung="failed", error="unreachable", sent=False))
            return self._go_on(view, given_up, (*said, say(Phase.ESCALATION_CHECK, tripped)))
        if event.resolution == "abandoned":
            counted = _counted(view, call, sent=event.detail.startswith(LOOKED))
            waiting = self._with(view.state, counted.evolve(effect=None, error="abandoned"))
            return self._go_on(view, waiting, said, 0)
        return self._doubted(view, call, event.effect, said)

    def _unread(
        self, view: View, call: Call, event: Recovered, unread: Unread
    ) -> tuple[Call, tuple[Said, ...]]:
        """The call with an answer that could not be read, which is kept as it came (R-TOOL-14)."""
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

    def _decided(self, view: View, event: GateDecided) -> Step:
        gate = view.state.gates[event.request]
        call = next(held for held in view.state.batch if held.id == gate.call)
        told, said = reconciled(view, call, event)
        state = self._with(view.state, told).evolve(gates=without(view.state.gates, event.request))
        state = side_effects.reconciled(view, state, told, event.decision)
        if event.decision != "cancel":
            state, words = settled(state, told, "person")
            said += words
        if event.decision == "cancel":
            return interrupted(state, Interrupt.CANCELLED, "cancelled_in_doubt", said)
        return self._go_on(view, state, said)

    def _unanswered(self, view: View, event: GateExpired) -> Step:
        """Nobody said what became of a call in doubt."""
        said = (say(Phase.ESCALATION_CHECK, ApprovalExpired(request=event.request)),)
        state = view.state.evolve(gates=without(view.state.gates, event.request))
        if state.halting is not None:
            # It is to end for another reason, and waited for this one answer alone.
            return Step(state=state, interrupt=state.halting, said=said)
        return interrupted(state.evolve(expired=True), Interrupt.EXPIRED, "reconciliation_expired", said)

    # -- going on
    # ------------------------------------------------------------------------------------------------

    def _go_on(self, view: View, state: State, said: tuple[Said, ...], wish_ms: int | None = None) -> Step:
        """Wait for what is still out, schedule what must be tried again, or go on when everything is in."""
        if state.pending or state.gates:
            return Step(state=state, said=said)
        if state.halting is not None:
            state = state.evolve(batch=tuple(_dropped(call) for call in state.batch))
        waiting = [call for call in state.batch if call.rung not in SETTLED]
        if not waiting:
            return Step(state=state.evolve(timer=None), outcome="captured", said=said)
        if state.paused:
            return Step(state=state.evolve(held=True), said=said)
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
        return Step(state=state.evolve(timer=timer.due), said=said + scheduled, effects=(timer,))

    def _try_again(self, view: View) -> Step:
        state = view.state
        if state.timer is None or view.at < state.timer:
            return Step(state=state)
        if state.paused:
            return Step(state=state.evolve(held=True, timer=None))
        return self._launch_waiting(view)

    def _launch_waiting(self, view: View) -> Step:
        """Make each call that waits once more, if it may still be made."""
        state = view.state
        if view.headroom.slice_over:
            return Step(state=state.evolve(held=True, timer=None))
        said: list[Said] = []
        effects: list[Effect] = []
        for ordinal, call in enumerate(state.batch):
            if not _waits(call):
                continue
            if (key := taken(view, view.pins.by_name[call.tool], call)) is not None:
                # Whatever writes goes alone: there is no other call that this keeps waiting.
                return waits(view, view.state, call, key)
            if (refused := Chain(view, call, first=False).still()) is not None:
                if open_of(state, call) is not None:
                    # It is not sent again, which says nothing of the request that nobody answered.
                    return self._no_more(view, call, refused.said)
                failed = call.evolve(rung="failed", error=refused.verdict, sent=False)
                state = self._with(state, failed)
                said.extend(refused.said)
                continue
            started = launch(view, state, call.evolve(attempt=call.attempt + 1), ordinal)
            state = started.state
            said.extend(started.said)
            effects.extend(started.effects)
        state = state.evolve(timer=None)
        if not effects:
            return self._go_on(view, state, tuple(said))
        return Step(state=state, said=tuple(said), effects=tuple(effects))

    def _no_more(self, view: View, call: Call, said: tuple[Said, ...]) -> Step:
        asked = ask_what_became(view, call)
        return Step(state=asked.state.evolve(timer=None), said=said + asked.said, effects=asked.effects)

    def _call(self, view: View, effect: str) -> Call:
        return next(call for call in view.state.batch if call.effect == effect)

    def _with(self, state: State, call: Call) -> State:
        return state.evolve(batch=replaced(state, call))

    def _said(self, body: CallObserved | CallRecovered | RetryScheduled) -> Said:
        return say(Phase.OBSERVATION_GROUNDING, body)


def _expired(view: View, call: Call, error: str) -> bool:
    """Whether a call failed because a credential has run out: it says so, or the tool was let in before in
    this run (R-TOOL-13)."""
    if view.manifest.core_version < EXPIRY_SINCE or view.state.halting is not None:
        return False
    before = any(fact.tool == call.tool for fact in view.state.facts.values())
    return error == "credential_expired" or (error == "unauthorized" and before)


def _sent_enough(view: View, call: Call, event: Recovered) -> bool:
    """Whether a call that a look-up surely did not find was sent as often as its retry policy allows, and
    once more at the least (R-TOOL-10). What a worker did not send at all is not counted."""
    if view.manifest.core_version < RESENDS_SINCE or not event.detail.startswith(LOOKED):
        return False
    gauge = view.state.limits.get("retries")
    most = view.pins.by_name[call.tool].max_retries
    return call.attempt - call.unsent > max(1, most if gauge is None else min(most, int(gauge)))


def _counted(view: View, call: Call, *, sent: bool) -> Call:
    """The call with an attempt that nobody sent noted, in runs that know the difference."""
    if sent or view.manifest.core_version < UNSENT_SINCE:
        return call
    return call.evolve(unsent=call.unsent + 1)


def _waits(call: Call) -> bool:
    """Whether the call waits for its next attempt."""
    return call.rung not in SETTLED and call.rung != "in_doubt" and call.effect is None


def _dropped(call: Call) -> Call:
    """A call that waited for another attempt in a run that is to be stopped: it stays failed."""
    return call.evolve(rung="failed") if _waits(call) else call


KIND = CaptureObservation()

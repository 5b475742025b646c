"""Reconciliation after a run's end: record what became of changes in doubt (R-TOOL-9, R-SESS-9).

The run keeps its end and its terminal code. The outcome goes into its state, where a retry finds it: a
change that did not happen may be sent; for one that happened, people are asked once more before anything
like it is sent.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from orchestrator.core.accounting import side_effects
from orchestrator.core.calls.open_effects import HAPPENED, opened_key
from orchestrator.core.common.frozen_model import FrozenModel, with_entry, without_keys
from orchestrator.core.compensation.plan import CALL_FAILED, IN_DOUBT, UNANSWERED, undo_id
from orchestrator.core.domain.effects import SentChange
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import AnyEvent, EffectLookedUp, EffectReconciled, LateAnswer
from orchestrator.core.domain.run_state import OpenEffect, RunState, SideEffect, Verdict
from orchestrator.core.engine import late_events
from orchestrator.core.workflow.node_protocol import trace_event
from traces.core.events import trace_events as trace
from traces.core.events.phases import Phase
from traces.core.integrity.chain import TraceEntry

# Late outcomes that mean that nothing was sent. After any other, a change may have been made.
NOTHING_SENT: Final = ("abandoned", "circuit_open")
NOT_IN_DOUBT: Final = "not_in_doubt"
Why = Literal["in_doubt", "open", "undo_in_doubt", "learnt_late", "reopened"]


class DoubtfulChange(FrozenModel):
    """A change of an ended run that may or may not have happened."""

    change: SentChange
    why: Why

    @property
    def blocks(self) -> bool:
        """Return whether the change must be settled before the run is retried.

        An open effect does not block: the retry asks before it sends the effect.
        """
        return self.why != "open"


def list_doubts(
    state: RunState, changes: Sequence[SentChange], late: frozenset[str]
) -> tuple[DoubtfulChange, ...]:
    """Return the changes in doubt, in the order in which they were requested.

    `changes` are the newest requests of the run's mutating calls, and those of other runs of its line that
    its state names; `late` are the effects whose outcome came when the run no longer waited for it.
    """
    found: list[DoubtfulChange] = []
    for change in changes:
        known = state.reconciled.get(change.effect)
        if known is not None and known.verdict != "reopened":
            continue
        why: Why | None = "reopened" if known is not None else _classify_doubt(state, change, late)
        if why is not None:
            found.append(DoubtfulChange(change=change, why=why))
    return tuple(found)


def _classify_doubt(state: RunState, change: SentChange, late: frozenset[str]) -> Why | None:
    """Return why the outcome of a change is unknown; None if it is known."""
    is_late = not late.isdisjoint(effects_of(change))
    if (undone := _undone_by(state, change.call)) is not None:
        if state.deeds[undone].why == UNANSWERED:
            return "undo_in_doubt"
        return "learnt_late" if is_late and state.deeds[undone].standing != "undone" else None
    deed = state.deeds.get(change.call)
    opened = next((one for one in state.opened.values() if one.effect in effects_of(change)), None)
    if deed is not None and IN_DOUBT in (deed.standing, deed.why):
        return "in_doubt"
    if opened is not None and opened.error != HAPPENED:
        return "in_doubt" if opened.error == IN_DOUBT else "open"
    return "learnt_late" if deed is None and is_late else None


def _undone_by(state: RunState, call: str) -> str | None:
    """Return the call whose side effect this call was to undo."""
    return next((key for key in state.deeds if undo_id(key) == call), None)


def settled_calls(state: RunState) -> frozenset[str]:
    """Return the calls of changes whose outcome was learnt after the end."""
    return frozenset(one.call for one in state.reconciled.values() if one.verdict != "reopened")


def apply_late_event(
    manifest: Manifest, state: RunState, event: AnyEvent
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    """Apply an event to the state of a run that has ended; return the state and the trace entries."""
    if isinstance(event, EffectReconciled):
        return _apply_reconciliation(manifest, state, event)
    if isinstance(event, EffectLookedUp):
        return _looked_up(manifest, state, event)
    said = late_events.trace_late_event(state, event)
    if isinstance(event, LateAnswer) and event.status not in NOTHING_SENT:
        state, words = _reopen_reconciliation(state, event.effect, event.status)
        said += words
    return state, said


def _apply_reconciliation(
    manifest: Manifest, state: RunState, event: EffectReconciled
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    """Apply a person's decision. The first definite one counts."""
    change = event.change
    if _is_known(state, change.effect):
        refused = trace.DecisionRefused(request=change.effect, by=event.by, reason=NOT_IN_DOUBT)
        return state, (trace_event(Phase.ESCALATION_CHECK, refused),)
    word = trace.Reconciled(
        effect=change.effect, verdict=event.verdict, by=event.by, reason=event.reason[:500]
    )
    verdict = Verdict(verdict=event.verdict, call=change.call, by=event.by, attempts=change.attempts)
    said = (
        trace_event(Phase.OBSERVATION_GROUNDING, word, actor="person"),
        _trace_effect_settled(change, "person"),
    )
    return _with_verdict(manifest, state, change, verdict, None), said


def _looked_up(
    manifest: Manifest, state: RunState, event: EffectLookedUp
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    """Apply the result of a look-up.

    It does not override a recorded verdict: if the look-up finds a change that was recorded as not made,
    the change is in doubt again.
    """
    change = event.change
    names: Mapping[str, Literal["found", "abandoned", "in_doubt"]] = {
        "found": "found", "absent": "abandoned", "unknown": "in_doubt",
    }  # fmt: skip
    body = trace.CallRecovered(
        effect=change.effect, resolution=names[event.resolution], detail=event.detail[:300]
    )
    said: tuple[TraceEntry, ...] = (trace_event(Phase.OBSERVATION_GROUNDING, body, actor=event.by),)
    if event.resolution == "found":
        seen = trace.CallObserved(
            call=change.call, effect=change.effect, status="found", observation=event.observation,
            size=event.size,
        )  # fmt: skip
        said += (trace_event(Phase.OBSERVATION_GROUNDING, seen),)
    if _is_known(state, change.effect):
        if event.resolution != "found":
            return state, said
        state, words = _reopen_reconciliation(state, change.effect, "found")
        return state, said + words
    if event.resolution == "unknown":
        return state, said
    happened = event.resolution == "found"
    verdict = Verdict(
        verdict="happened" if happened else "not_happened", call=change.call, by=event.by,
        attempts=change.attempts,
    )  # fmt: skip
    settled = _trace_effect_settled(change, "done" if happened else "absent")
    return _with_verdict(manifest, state, change, verdict, event.observation), (*said, settled)


def _is_known(state: RunState, effect: str) -> bool:
    known = state.reconciled.get(effect)
    return known is not None and known.verdict != "reopened"


def _reopen_reconciliation(
    state: RunState, effect: str, reason: str
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    """Return the state in which a change that was recorded as not made is in doubt again."""
    named = next((name for name, one in state.reconciled.items() if effect in (name, *one.attempts)), "")
    known = state.reconciled.get(named)
    if known is None or known.verdict != "not_happened":
        return state, ()
    again = with_entry(state.reconciled, named, known.evolve(verdict="reopened"))
    body = trace.CallInDoubt(call=known.call, effect=effect, tool="", reason=f"reopened:{reason}"[:100])
    return state.evolve(reconciled=again), (trace_event(Phase.OBSERVATION_GROUNDING, body),)


def _trace_effect_settled(change: SentChange, by: Literal["done", "absent", "person"]) -> TraceEntry:
    body = trace.EffectSettled(
        call=change.call, effect=change.effect, tool=change.tool, key=change.key, by=by
    )
    return trace_event(Phase.OBSERVATION_GROUNDING, body)


def _with_verdict(
    manifest: Manifest, state: RunState, change: SentChange, verdict: Verdict, observation: str | None
) -> RunState:
    """Return the state with the outcome of a change.

    The side effect is recorded or removed accordingly. A change that happened is reported when the same
    action is requested again.
    """
    told = state.evolve(reconciled=with_entry(state.reconciled, change.effect, verdict))
    happened = verdict.verdict == "happened"
    if (undone := _undone_by(state, change.call)) is not None:
        deed = state.deeds[undone]
        after = deed.evolve(standing="undone", why="") if happened else deed.evolve(why=CALL_FAILED)
        return told.evolve(deeds=with_entry(told.deeds, undone, after))
    key = opened_key(change.tool, change.argument_digest)
    if not happened:
        kept = without_keys(told.opened, key) if _is_of(told, key, change) else told.opened
        left = without_keys(told.deeds, change.call) if change.call in told.deeds else told.deeds
        return told.evolve(opened=kept, deeds=left)
    opened = OpenEffect(
        call=change.call, tool=change.tool, effect=change.effect, key=change.key, error=HAPPENED
    )
    told = told.evolve(opened=with_entry(told.opened, key, opened))
    spec = manifest.pins.by_name.get(change.tool)
    if change.call not in told.deeds and (spec is None or not side_effects.is_tracked(spec)):
        return told
    deed = SideEffect(tool=change.tool, arguments=change.arguments, observation=observation)
    return told.evolve(deeds=with_entry(told.deeds, change.call, deed))


def _is_of(state: RunState, key: str, change: SentChange) -> bool:
    opened = state.opened.get(key)
    return opened is not None and opened.effect in effects_of(change)


def effects_of(change: SentChange) -> frozenset[str]:
    """Return the effects of all requests of a change."""
    return frozenset((change.effect, *change.attempts))


def with_learnt(checkpoint: RunState, end: RunState) -> RunState:
    """Return a retry's state with the outcomes that were reconciled after the run's end.

    Changes that did not happen are no longer open; those that happened stay recorded. The calls of the
    retry are numbered on from the end of the run.
    """
    if not end.reconciled:
        return checkpoint
    told = ((effect, one) for effect, one in end.reconciled.items() if one.verdict == "not_happened")
    absent = {name for effect, one in told for name in (effect, *one.attempts)}
    opened = {key: one for key, one in checkpoint.opened.items() if one.effect not in absent}
    happened = [one.call for one in end.reconciled.values() if one.verdict == "happened"]
    made = {call: end.deeds[call] for call in happened if call in end.deeds}
    numbered = checkpoint.counters.evolve(calls=max(checkpoint.counters.calls, end.counters.calls))
    return checkpoint.evolve(opened=opened, deeds={**checkpoint.deeds, **made}, counters=numbered)

"""Recovery of effects that were in flight when their worker died: docs/ring.md, row by row (R-TOOL-9)."""

from datetime import datetime
from time import sleep
from typing import Literal

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.send_once import claim_dispatch, renew_intent, verdict_of
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import AnyEvent, Recovered, ToolFailed
from orchestrator.runs.queries.inflight_effects import IntentRow, open_intents
from orchestrator.worker.effects.effect_executor import Fault, Outcomes, Performer

GRACE_SECONDS = 2.0


def recover_pending_effects(hand: ClaimedRun, performer: Performer, fault: Fault) -> Outcomes:
    """Resolve every effect in flight, one by one. Usually none is in flight."""
    if not hand.state.pending:
        return Outcomes()
    events: list[AnyEvent] = []
    bodies: dict[str, bytes] = {}
    overslept = False
    for intent in open_intents(hand.tenant, tuple(hand.state.pending)):
        resolved = _resolve_intent(hand, performer, intent, fault)
        events.extend(resolved.events)
        bodies.update(resolved.bodies)
        overslept = overslept or resolved.overslept
    return Outcomes(events=tuple(events), bodies=bodies, overslept=overslept)


def _resolve_intent(hand: ClaimedRun, performer: Performer, intent: IntentRow, fault: Fault) -> Outcomes:
    """Resolve one intent by its row of the table."""
    at = hand.manifest.admitted_at
    effect = intent.effect
    if isinstance(effect, CallModel):
        return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="lost"),))
    if not effect.mutating or effect.honours_keys:
        return _repeat_call(hand, performer, effect, at, fault)
    if _surely_unsent(hand, effect):
        return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="abandoned"),))
    _wait_out(intent)
    return performer.resolve(hand, effect, at, late=True)


def _repeat_call(
    hand: ClaimedRun, performer: Performer, effect: CallTool, at: datetime, fault: Fault
) -> Outcomes:
    """Repeat the call with the same id and key, after its intent is renewed under this worker's fence."""
    renew_intent(hand.tenant, hand.run, effect, hand.fence)
    fault("renewed")
    again = performer.perform(hand, (effect,), fault, again=True)
    said = Recovered(at=at, effect=effect.id, resolution="repeated", takeovers=hand.takeovers)
    return Outcomes(events=(said, *again.events), bodies=again.bodies, overslept=again.overslept)


def _surely_unsent(hand: ClaimedRun, effect: CallTool) -> bool:
    """Return whether a call that honours no key was never sent and never will be.

    Recovery has marked its dispatch as abandoned, now or earlier.
    """
    written = claim_dispatch(hand.tenant, hand.run, effect.id, "abandoned")
    return written or verdict_of(hand.tenant, effect.id) == "abandoned"


def _wait_out(intent: IntentRow) -> None:
    """Wait until the sender's deadline plus a grace period, for 60 seconds at most.

    The sender may still be active; an earlier lookup could miss a call in progress.
    """
    left = intent.seconds_left + GRACE_SECONDS
    if left > 0:
        sleep(min(left, 60.0))


def given_up(hand: ClaimedRun) -> Outcomes:
    """Return a safe end for each in-flight effect of a run that kills its workers; nothing is performed."""
    at = hand.manifest.admitted_at
    events: list[AnyEvent] = []
    for intent in open_intents(hand.tenant, tuple(hand.state.pending)):
        effect = intent.effect
        if isinstance(effect, CallModel):
            # The model may have answered, so the call is charged. A resumed run repeats the call.
            events.append(Recovered(at=at, effect=effect.id, resolution="lost"))
        elif not effect.mutating:
            events.append(ToolFailed(at=at, effect=effect.id, error="crashed", sent=True, transient=False))
        else:
            unsent = not effect.honours_keys and _surely_unsent(hand, effect)
            resolution: Literal["abandoned", "in_doubt"] = "abandoned" if unsent else "in_doubt"
            events.append(Recovered(at=at, effect=effect.id, resolution=resolution))
    return Outcomes(events=tuple(events))

"""Looking up, for people, what became of changes whose run has ended (R-TOOL-9)."""

from datetime import datetime

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.common.errors import ContentMissing
from orchestrator.core.domain.effects import CallTool, SentChange
from orchestrator.core.domain.run_events import LOOKED, EffectLookedUp
from orchestrator.core.tools.schema_drift import fault_of
from orchestrator.runs.queries.inflight_effects import open_intents
from orchestrator.runs.queries.pending_signals import AskedLookUp, asked_look_ups
from orchestrator.worker.effects.effect_executor import ABSENT, Outcomes, Performer
from tenancy.db.tenant_context import tenant_transaction


def look_up_after_end(hand: ClaimedRun, performer: Performer) -> Outcomes:
    """Make every look-up that a person asked for since; the commit that records one takes the wish for it."""
    if hand.state.outcome is None:
        return Outcomes()
    with tenant_transaction(hand.tenant):
        asked = asked_look_ups(hand.run)
    bodies: dict[str, bytes] = {}
    events = []
    for one in asked:
        event, found = _looked_up(hand, performer, one, hand.manifest.admitted_at)
        events.append(event)
        bodies.update(found)
    return Outcomes(events=tuple(events), bodies=bodies)


def _looked_up(
    hand: ClaimedRun, performer: Performer, asked: AskedLookUp, at: datetime
) -> tuple[EffectLookedUp, dict[str, bytes]]:
    change = SentChange.model_validate(asked.change)
    unknown = EffectLookedUp(at=at, change=change, resolution="unknown", by=asked.by)
    intents = open_intents(hand.tenant, (change.effect,))
    effect = intents[0].effect if intents else None
    if not isinstance(effect, CallTool) or effect.tool not in hand.manifest.pins.by_name:
        return unknown.evolve(detail=f"{LOOKED}: its tool is not pinned"), {}
    try:
        found = performer.look_up(hand, effect, late=True)
    except ContentMissing:
        return unknown.evolve(detail=f"{LOOKED}: its arguments were erased"), {}
    if not found.answered:
        return unknown.evolve(detail=f"{LOOKED}: {found.why}"[:200]), {}
    if found.observation is None:
        return unknown.evolve(resolution="absent" if effect.conclusive else "unknown", detail=ABSENT), {}
    odd = fault_of(hand.manifest.pins.by_name[effect.tool], found.bodies[found.observation])
    seen = unknown.evolve(observation=found.observation, size=found.size)
    if odd:
        return seen.evolve(detail=f"{LOOKED}: found, and {odd}"[:200]), dict(found.bodies)
    return seen.evolve(resolution="found", detail=f"{LOOKED}: found"), dict(found.bodies)

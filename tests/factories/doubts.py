"""Changes in doubt of ended runs of a test's world."""

from typing import Literal
from uuid import UUID

from orchestrator.core.engine.late_reconciliation import DoubtfulChange
from orchestrator.decisions.actions.late_reconciliation import reconcile_late_effect
from orchestrator.decisions.queries.in_doubt_changes import doubts_of
from orchestrator.runs.models.run import Run
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.tenancy import Somebody
from tests.factories.world import World


def doubts(world: World, run: UUID) -> tuple[DoubtfulChange, ...]:
    """The changes of a run of which nobody knows what became."""
    with tenant_transaction(world.id):
        return doubts_of(Run.objects.get(id=run))


def say(
    world: World, run: UUID, verdict: Literal["happened", "not_happened"], *, by: Somebody | None = None
) -> None:
    """Say so of its one change in doubt, and let the run take it."""
    (one,) = doubts(world, run)
    who = (by or world.people.approver).id
    reconcile_late_effect(world.id, run, one.change.effect, by=who, verdict=verdict, reason="I looked.")
    world.drive(run)

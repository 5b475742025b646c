"""Runs closed by a safety rule that security has not reviewed (R-BUDGET-12). Call it in the tenant's
context.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db.models import Q

from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.retry_lineage import doers_of
from tenancy.core.errors import NotFound
from tenancy.core.relations import Actors
from tenancy.db.clock import database_now
from tenancy.models import AuditEntry
from tenancy.people.relations import relations_of

CLOSED: Final = Q(terminal_code="UNSAFE_DETECTION") | Q(
    terminal_code="PERMISSION_DENIED", reason="repeated_denials"
)
REVIEWED: Final = "security.review"
BACK: Final = timedelta(days=90)
MOST: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreviewedRuns:
    """Unreviewed runs, oldest first, at most `MOST`; `more` counts the rest."""

    runs: tuple[Run, ...]
    more: int


def list_unreviewed_runs() -> UnreviewedRuns:
    """Return the unreviewed runs of the last ninety days."""
    closed = Run.objects.filter(CLOSED, finished_at__gt=database_now() - BACK)
    runs = tuple(closed.order_by("finished_at", "id"))
    # A run is reviewed after its end, so only that part of a long audit log is read, which is mostly empty.
    said = AuditEntry.objects.filter(verb=REVIEWED).values_list("object", flat=True)
    reviewed = set(said.filter(at__gte=runs[0].finished_at)) if runs else set()
    open_ones = [run for run in runs if name_of(run.id) not in reviewed]
    return UnreviewedRuns(runs=tuple(open_ones[:MOST]), more=max(0, len(open_ones) - MOST))


def own_among(runs: Iterable[Run], principal_id: UUID, owner_id: UUID) -> set[UUID]:
    """Return the runs that a principal, or its owner, is behind, and so may not review (R-APPR-5)."""
    found = relations_of(principal_id, owner_id)
    own = Actors(found.keys | {principal_id}, found.people | {owner_id})
    return {run.id for run in runs if own.overlaps(doers_of(run.id))}


def to_review(run_id: UUID) -> Run:
    """Return the run, if a safety rule closed it.

    Raises: NotFound.
    """
    run = Run.objects.filter(CLOSED, id=run_id).first()
    if run is None:
        raise NotFound
    return run


def name_of(run_id: UUID) -> str:
    """Return the name of a run in the audit log."""
    return f"run:{run_id}"

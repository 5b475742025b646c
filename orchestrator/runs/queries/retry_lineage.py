"""The line of a run: itself and the runs it goes on from (R-SESS-9). Inside the tenant's context."""

from typing import Final, NamedTuple
from uuid import UUID

from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.models.run import Run
from tenancy.core.relations import Actors
from tenancy.db.tenant_context import raw_cursor

LINE: Final = """
WITH RECURSIVE line AS (
  SELECT id, retry_of_id, 0 AS back FROM orchestrator_run WHERE id = %(run)s
 UNION ALL
  SELECT r.id, r.retry_of_id, line.back + 1 FROM line JOIN orchestrator_run r ON r.id = line.retry_of_id)
SELECT id FROM line ORDER BY back"""

RETRIERS: Final = """
WITH RECURSIVE line AS (
  SELECT id, retry_of_id, retried_by FROM orchestrator_run WHERE id = %(run)s
 UNION ALL
  SELECT r.id, r.retry_of_id, r.retried_by FROM line JOIN orchestrator_run r ON r.id = line.retry_of_id)
SELECT DISTINCT p.id, p.owner_id FROM line JOIN tenancy_principal p ON p.id = line.retried_by ORDER BY p.id"""


class Retrier(NamedTuple):
    """Whoever had a run begun again: the principal, and the person who answers for it."""

    principal: UUID
    owner: UUID


def retriers_of(run_id: UUID) -> tuple[Retrier, ...]:
    """All who had this run, or one that it goes on from, begun again."""
    cursor = raw_cursor()
    cursor.execute(RETRIERS, {"run": run_id})
    return tuple(Retrier(*row) for row in cursor.fetchall())


def doers_of(run_id: UUID) -> Actors[UUID]:
    """Those who answer for a run: who submitted it, and all who had it, or one that it goes on from, begun
    again."""
    run = Run.objects.only("submitted_by", "owner", "retried_by").get(id=run_id)
    retriers = retriers_of(run_id) if run.retried_by else ()
    principals = (run.submitted_by, *(one.principal for one in retriers))
    return Actors(principals, (run.owner, *(one.owner for one in retriers)))


def line_of(run_id: UUID) -> tuple[UUID, ...]:
    """The run, then the one it was begun after, back to the first of them."""
    cursor = raw_cursor()
    cursor.execute(LINE, {"run": run_id})
    return tuple(row[0] for row in cursor.fetchall()) or (run_id,)


def retried_as(run_id: UUID) -> UUID | None:
    """The run that began after one of this run's records; None where none did."""
    return Run.objects.filter(retry_of_id=run_id).values_list("id", flat=True).first()


def newer_version(run: Run) -> int | None:
    """The newest version of the run's workflow that is not retired, where that is not the run's own: a retry
    goes by the run's."""
    found = WorkflowVersion.objects.filter(slug=run.workflow, retired_at=None).order_by("-version")
    newest = found.values_list("version", flat=True).first()
    return newest if newest is not None and newest > run.workflow_version.version else None


def newest_of(run: Run) -> UUID:
    """The newest run of a run's task."""
    newest = Run.objects.filter(task_id=run.task_id).order_by("-created_at", "-id")
    return newest.values_list("id", flat=True)[0]

"""Handle the timers of a run's approvals: expiry and due deferrals (R-APPR-7)."""

from uuid import UUID

from approvals.actions import expire_due_of_run
from approvals.actions.undo import take_effect
from orchestrator.runs.gateways.job_queue import take_later
from orchestrator.tenants.queries.cross_tenant import tenant_of_run
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction


def expire_gates_of(run_id: UUID) -> int:
    """Expire the run's overdue requests by the database's clock and return how many there were."""
    tenant_id = tenant_of_run(run_id)
    if tenant_id is None:
        return 0
    with tenant_transaction(tenant_id):
        return expire_due_of_run(tenant_id, run_id, database_now())


def take_words_of(run_id: UUID) -> None:
    """Apply each deferred approval of the run's requests that is due by the database's clock.

    If a deferral is not due yet, a new attempt is scheduled for its due time.
    """
    tenant_id = tenant_of_run(run_id)
    left = None if tenant_id is None else take_effect(tenant_id, run_id)
    if left is not None:
        take_later(run_id, after=left.total_seconds())

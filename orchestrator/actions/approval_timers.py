"""What time does to a run's gates: they expire (R-APPR-7), and what people said of them takes effect."""

from uuid import UUID

from approvals.actions import expire_due_of_run
from approvals.actions.undo import take_effect
from orchestrator.gateways.job_queue import take_later
from orchestrator.queries.cross_tenant import tenant_of_run
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction


def expire_gates_of(run_id: UUID) -> int:
    """Expire the run's requests that are past their time, by the database's clock; how many there were."""
    tenant_id = tenant_of_run(run_id)
    if tenant_id is None:
        return 0
    with tenant_transaction(tenant_id):
        return expire_due_of_run(tenant_id, run_id, database_now())


def take_words_of(run_id: UUID) -> None:
    """Let each yes to the run's requests take effect that could be taken back until now, by the database's
    clock. One whose time has not come is looked at again then."""
    tenant_id = tenant_of_run(run_id)
    left = None if tenant_id is None else take_effect(tenant_id, run_id)
    if left is not None:
        take_later(run_id, after=left.total_seconds())

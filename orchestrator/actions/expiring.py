"""Gates whose time is up (R-APPR-7)."""

from uuid import UUID

from approvals.actions import expire_due_of_run
from orchestrator.queries.crossing import tenant_of_run
from tenancy.clock import database_now
from tenancy.context import tenant


def expire_gates_of(run_id: UUID) -> int:
    """Expire the run's requests that are past their time, by the database's clock; how many there were."""
    tenant_id = tenant_of_run(run_id)
    if tenant_id is None:
        return 0
    with tenant(tenant_id):
        return expire_due_of_run(tenant_id, run_id, database_now())

"""Reads of the platform's pages about a tenant: numbers alone (R-SEC-10)."""

from uuid import UUID

from django.db.models import QuerySet

from orchestrator.core.common.run_status import TERMINAL_STATUSES
from orchestrator.runs.models.run import Run
from tenancy.db.tenant_context import tenant_transaction


def runs_to_pause() -> "QuerySet[Run]":
    """The runs of a tenant that suspending it asks to pause. In the tenant's context."""
    alive = Run.objects.exclude(status__in=[status.value for status in TERMINAL_STATUSES])
    return alive.exclude(status="paused")


def count_runs_to_pause(tenant_id: UUID) -> int:
    """How many runs suspending the tenant would ask to pause. Opens the tenant's transaction."""
    with tenant_transaction(tenant_id):
        return runs_to_pause().count()

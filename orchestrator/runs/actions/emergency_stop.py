"""The emergency stop (R-SEC-9): in force before the next effect of any running run."""

from typing import Literal
from uuid import UUID

from django.db import transaction

from orchestrator.runs.models.emergency_stop import EmergencyStop
from tenancy.actions import write_audit_entry
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction

Scope = Literal["global", "tenant", "workflow", "tool"]


def stop_everything(
    scope: Scope, *, tenant_id: UUID | None, target: str = "", by: UUID | None, reason: str
) -> EmergencyStop:
    """Put a stop in force. `target` names the workflow or tool. Outermost verb: owns the transaction. One of
    all tenants is made outside any: the database takes it from nobody within one."""
    if scope == "global":
        with transaction.atomic():
            return EmergencyStop.objects.create(scope=scope, reason=reason[:500], by=by, at=database_now())
    assert tenant_id is not None
    with tenant_transaction(tenant_id):
        stop = EmergencyStop.objects.create(
            scope=scope, tenant_id=tenant_id, target=target, reason=reason[:500], by=by, at=database_now()
        )
        write_audit_entry(
            tenant_id,
            by,
            verb="stop.set",
            object=f"{scope}:{target}",
            before={},
            after={"stop": str(stop.id)},
            reason=reason,
        )
        return stop


def lift_stop(stop_id: UUID, *, tenant_id: UUID | None, by: UUID | None, reason: str) -> bool:
    """Take a stop out of force; whether it was in force. A tenant can lift its own only, and whoever names
    none those of all. Outermost verb: owns the transaction."""
    if tenant_id is None:
        with transaction.atomic():
            return _mark_stop_lifted(stop_id, None, by)
    with tenant_transaction(tenant_id):
        lifted = _mark_stop_lifted(stop_id, tenant_id, by)
        if lifted:
            write_audit_entry(
                tenant_id,
                by,
                verb="stop.lift",
                object=f"stop:{stop_id}",
                before={"in_force": True},
                after={"in_force": False},
                reason=reason,
            )
        return lifted


def _mark_stop_lifted(stop_id: UUID, tenant_id: UUID | None, by: UUID | None) -> bool:
    stops = EmergencyStop.objects.filter(id=stop_id, tenant_id=tenant_id, lifted_at=None)
    return bool(stops.update(lifted_at=database_now(), lifted_by=by))

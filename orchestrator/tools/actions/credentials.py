"""Keeping a secret that expires, and where a new one is had (R-TOOL-13)."""

from datetime import datetime
from uuid import UUID

from orchestrator.core.tools.egress_policy import target_of
from orchestrator.tools.gateways.egress.guarded_transport import look_before_saving
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import InvalidInput
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Secret
from tenancy.secret_store import Renewal, keep_secret


def keep_credential(
    tenant_id: UUID,
    name: str,
    value: str,
    *,
    origin: str,
    by: UUID | None,
    reason: str,
    expires_at: datetime | None = None,
    renewal: Renewal | None = None,
) -> Secret:
    """Keep a secret, with its life where it has one. The token endpoint is judged like any way out. Raises
    InvalidInput, EgressRefused."""
    with tenant_transaction(tenant_id):
        if expires_at is not None and expires_at <= database_now():
            raise _build_input_error("/expires_at", "It has passed already.")
        if renewal is not None and expires_at is None:
            raise _build_input_error(
                "/expires_at", "What never expires is never renewed: say when this one does."
            )
        leave = leave_for(target_of(renewal.url).origin) if renewal is not None else None
    if renewal is not None and leave is not None:
        look_before_saving(renewal.url, leave)
    return keep_secret(
        tenant_id, name, value, origin=origin, by=by, reason=reason, expires_at=expires_at, renewal=renewal
    )


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": "not-allowed", "detail": detail}])

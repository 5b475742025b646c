"""Changing and suspending a tenant, by whoever runs the deployment (R-SEC-10)."""

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from tenancy.actions import audit
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.models import Tenant
from tenancy.zones import known

SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")
LOWEST_AUTONOMY, HIGHEST_AUTONOMY = 1, 7
CHANGEABLE: Final = ("name", "time_zone", "tier", "highest_autonomy_tier")


def check_tenant_fields(fields: Mapping[str, Any]) -> None:
    """Raises InvalidInput that names each field whose value no tenant can have."""
    faults = {
        "slug": ("slug" in fields and not SLUG.fullmatch(fields["slug"]))
        and "1 to 50 small letters, digits and hyphens, with no hyphen at either end.",
        "name": ("name" in fields and not 1 <= len(fields["name"].strip()) <= 200) and "1 to 200 characters.",
        "time_zone": ("time_zone" in fields and not known(fields["time_zone"]))
        and "A name of the IANA time zone database, such as Europe/Zurich.",
        "highest_autonomy_tier": (
            "highest_autonomy_tier" in fields
            and not LOWEST_AUTONOMY <= fields["highest_autonomy_tier"] <= HIGHEST_AUTONOMY
        )
        and f"A whole number from {LOWEST_AUTONOMY} to {HIGHEST_AUTONOMY}.",
    }
    errors = [
        {"pointer": f"/{name}", "code": "invalid", "detail": fault} for name, fault in faults.items() if fault
    ]
    if errors:
        raise InvalidInput(errors=errors)


def change_tenant(tenant_id: UUID, changes: Mapping[str, Any], *, by: UUID | None, reason: str) -> Tenant:
    """Change name, time zone, tier or highest autonomy of a tenant, and audit what changed. Outermost verb.

    Raises NotFound, and InvalidInput for a value that no tenant can have.
    """
    check_tenant_fields(changes)
    with tenant(tenant_id):
        row = _locked(tenant_id)
        before = {name: getattr(row, name) for name in CHANGEABLE if name in changes}
        after = {name: changes[name] for name in before if changes[name] != before[name]}
        if after:
            Tenant.objects.filter(id=tenant_id).update(**after)
            _note(tenant_id, "tenant.change", {name: before[name] for name in after}, after, by, reason)
        return Tenant.objects.get(id=tenant_id)


def suspend_tenant(tenant_id: UUID, *, by: UUID | None, reason: str) -> bool:
    """Suspend a tenant: its people and keys are refused and nothing starts in it. Returns False if it was
    suspended already. Outermost verb. Raises NotFound, and InvalidInput without a reason."""
    if not reason.strip():
        raise InvalidInput(errors=[{"pointer": "/reason", "code": "required", "detail": "Say why."}])
    with tenant(tenant_id):
        if _locked(tenant_id).suspended_at is not None:
            return False
        shown = reason.strip()[:500]
        Tenant.objects.filter(id=tenant_id).update(suspended_at=database_now(), suspended_reason=shown)
        _note(tenant_id, "tenant.suspend", {"suspended": False}, {"suspended": True}, by, reason)
        return True


def resume_tenant(tenant_id: UUID, *, by: UUID | None, reason: str) -> bool:
    """Let a suspended tenant's people and keys act again. Returns False if it was not suspended. Outermost
    verb. Raises NotFound."""
    with tenant(tenant_id):
        if _locked(tenant_id).suspended_at is None:
            return False
        Tenant.objects.filter(id=tenant_id).update(suspended_at=None, suspended_reason="")
        _note(tenant_id, "tenant.resume", {"suspended": True}, {"suspended": False}, by, reason)
        return True


def _locked(tenant_id: UUID) -> Tenant:
    """The tenant's row, which no run can begin under until the transaction ends."""
    row = Tenant.objects.select_for_update().filter(id=tenant_id).first()
    if row is None:
        raise NotFound
    return row


def _note(
    tenant_id: UUID,
    verb: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    by: UUID | None,
    reason: str,
) -> None:
    audit(tenant_id, by, verb=verb, object=f"tenant:{tenant_id}", before=before, after=after, reason=reason)

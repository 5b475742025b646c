"""Changing and suspending a tenant, by a platform administrator or whoever has the shell (R-SEC-10).

`by` None is whoever has the shell. Each deed is written down twice: in the tenant's audit log, without a
name, and in the platform's.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from tenancy.actions import write_audit_entry
from tenancy.actions.platform_admins import note_platform
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.people.platform_admins import PlatformActor, check_platform_admin
from tenancy.time_zones import is_known_time_zone

SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")
LOWEST_AUTONOMY, HIGHEST_AUTONOMY = 1, 7
CHANGEABLE: Final = ("name", "time_zone", "tier", "highest_autonomy_tier")


def check_tenant_fields(fields: Mapping[str, Any]) -> None:
    """Raises InvalidInput that names each field whose value no tenant can have."""
    faults = {
        "slug": ("slug" in fields and not SLUG.fullmatch(fields["slug"]))
        and "1 to 50 small letters, digits and hyphens, with no hyphen at either end.",
        "name": ("name" in fields and not 1 <= len(fields["name"].strip()) <= 200) and "1 to 200 characters.",
        "time_zone": ("time_zone" in fields and not is_known_time_zone(fields["time_zone"]))
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


def change_tenant(
    tenant_id: UUID,
    changes: Mapping[str, Any],
    *,
    by: PlatformActor | None,
    reason: str,
    expected: str | None = None,
) -> Tenant:
    """Change name, time zone, tier or highest autonomy of a tenant, and audit what changed. `expected` is the
    tag of what was looked at. Outermost verb.

    Raises Forbidden, NotFound, Stale, and InvalidInput for a value that no tenant can have.
    """
    check_tenant_fields(changes)
    with tenant_transaction(tenant_id):
        row = _lock_tenant(tenant_id, by)
        if expected is not None and expected != tenant_tag(row):
            raise Stale
        before = {name: getattr(row, name) for name in CHANGEABLE if name in changes}
        after = {name: changes[name] for name in before if changes[name] != before[name]}
        if after:
            Tenant.objects.filter(id=tenant_id).update(**after)
            was = {name: before[name] for name in after}
            note_of_tenant(row, "tenant.change", was, after, by=by, reason=reason)
        return Tenant.objects.get(id=tenant_id)


def suspend_tenant(tenant_id: UUID, *, by: PlatformActor | None, reason: str) -> bool:
    """Suspend a tenant: its people and keys are refused and nothing starts in it. Returns False if it was
    suspended already. Outermost verb. Raises Forbidden, NotFound, and InvalidInput without a reason."""
    if not reason.strip():
        raise InvalidInput(errors=[{"pointer": "/reason", "code": "required", "detail": "Say why."}])
    with tenant_transaction(tenant_id):
        row = _lock_tenant(tenant_id, by)
        if row.suspended_at is not None:
            return False
        shown = reason.strip()[:500]
        Tenant.objects.filter(id=tenant_id).update(suspended_at=database_now(), suspended_reason=shown)
        note_of_tenant(row, "tenant.suspend", {"suspended": False}, {"suspended": True}, by=by, reason=reason)
        return True


def resume_tenant(tenant_id: UUID, *, by: PlatformActor | None, reason: str) -> bool:
    """Let a suspended tenant's people and keys act again. Returns False if it was not suspended. Outermost
    verb. Raises Forbidden, NotFound."""
    with tenant_transaction(tenant_id):
        row = _lock_tenant(tenant_id, by)
        if row.suspended_at is None:
            return False
        Tenant.objects.filter(id=tenant_id).update(suspended_at=None, suspended_reason="")
        note_of_tenant(row, "tenant.resume", {"suspended": True}, {"suspended": False}, by=by, reason=reason)
        return True


def tenant_tag(row: Tenant) -> str:
    """A text that changes with what a platform administrator sets of a tenant."""
    said = (row.id, *(getattr(row, name) for name in CHANGEABLE), row.suspended_at, row.suspended_reason)
    return sha256(repr(said).encode()).hexdigest()[:16]


def note_of_tenant(
    row: Tenant,
    verb: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    by: PlatformActor | None,
    reason: str = "",
    in_tenant: bool = True,
) -> None:
    """Write down what was done to a tenant, in the platform's log and, without a name, in its own. Joins the
    tenant's transaction."""
    about = f"tenant:{row.id}"
    note_platform(by, verb, about, before=before, after={"slug": row.slug, **after}, reason=reason)
    if in_tenant:
        write_audit_entry(
            row.id, None, verb=verb, object=about, before=before, after=after, reason=reason, platform=True
        )


def _lock_tenant(tenant_id: UUID, by: PlatformActor | None) -> Tenant:
    """The tenant's row, which no run can begin under until the transaction ends. Raises Forbidden for whoever
    does not administer the platform."""
    check_platform_admin(by)
    row = Tenant.objects.select_for_update().filter(id=tenant_id).first()
    if row is None:
        raise NotFound
    return row

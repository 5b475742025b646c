"""Rotating a key: a new secret for the same principal (R-SEC-11)."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Least

from tenancy.actions import KEY_LIFE, NewKey, add_key, audit, check_role
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.errors import KeyRevoked, NotFound
from tenancy.core.reach import KeyLimits, RunReach
from tenancy.core.roles import Role
from tenancy.ids import fresh_id
from tenancy.models import ApiKey, Principal

LONGEST_OVERLAP: Final = timedelta(days=30)
NONE: Final = timedelta(0)


def rotate_key(
    tenant_id: UUID,
    key_id: UUID,
    *,
    overlap: timedelta = NONE,
    expires_in: timedelta = KEY_LIFE,
    by: UUID | None = None,
) -> NewKey:
    """A new key in the place of this one; audited. Outermost verb: owns the transaction.

    It is the same principal's, so runs, rates and idempotency go on; its role and limits are those of the key
    before, which ends at once or, at the latest, after `overlap`. Raises NotFound, KeyRevoked, RoleLacking.
    """
    with tenant(tenant_id):
        now = database_now()
        old = ApiKey.objects.select_for_update(of=("self",)).filter(id=key_id).first()
        if old is None:
            raise NotFound
        if old.revoked_at is not None:
            raise KeyRevoked
        principal, role = Principal.objects.select_related("owner").get(id=old.principal_id), Role(old.role)
        if Principal.objects.filter(kind="person", owner_id=principal.owner_id).exists():
            check_role(tenant_id, principal.owner, role)
        limits = KeyLimits(RunReach(old.runs), tuple(old.workflows), tuple(old.addresses))
        made = add_key(principal, fresh_id(), role, limits, expires_in, by=by, verb="key.rotate")
        _end(old, now, min(overlap, LONGEST_OVERLAP), by)
        return made


def _end(old: ApiKey, now: datetime, overlap: timedelta, by: UUID | None) -> None:
    row = ApiKey.objects.filter(id=old.id)
    before = {"expires_at": _written(old.expires_at), "revoked": False}
    after = {"expires_at": before["expires_at"], "revoked": True}
    if overlap <= NONE:
        row.update(revoked_at=now)
    else:
        # PostgreSQL's LEAST passes over an end that is not set.
        row.update(expires_at=Least(F("expires_at"), now + overlap))
        old.refresh_from_db(fields=["expires_at"])
        after = {"expires_at": _written(old.expires_at), "revoked": False}
    audit(old.tenant_id, by, verb="key.revoke", object=f"key:{old.id}", before=before, after=after)


def _written(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()

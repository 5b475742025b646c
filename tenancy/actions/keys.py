"""Making and rotating keys, by people and by keys: no key makes or renews one that reaches further than
itself (R-SEC-11)."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Least

from tenancy.actions import KEY_LIFE, NewKey, add_key, check_role, create_key, write_audit_entry
from tenancy.core.errors import Forbidden, InvalidInput, KeyGone, KeyTooWide, NotFound, RoleLacking
from tenancy.core.reach import KeyLimits, RunReach, checked_limits, has_ranges_within
from tenancy.core.roles import Role, Scope, scopes_of
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, Principal
from tenancy.queries import standing_of

LONGEST_OVERLAP: Final = timedelta(days=30)
NONE: Final = timedelta(0)
# Whoever made such keys for nobody would be as many second persons as there are keys.
ANSWERED_FOR: Final = frozenset({Scope.DECIDE, Scope.ADMIN})


def make_key(
    tenant_id: UUID,
    role: Role,
    *,
    label: str,
    by: UUID,
    by_key: UUID | None = None,
    answers: bool,
    expires_in: timedelta | None = None,
    limits: KeyLimits = KeyLimits(),  # noqa: B008 - a tuple that never changes
) -> NewKey:
    """Make a key for an administrator, or for a program of theirs by its key `by_key`; audited. Outermost
    verb: owns the transaction.

    `answers`: the person behind `by` answers for it; else nobody does. A key made by a key ends no later and
    is used from no more addresses than that one. Raises InvalidInput, Forbidden for whoever does not
    administer, RoleLacking, and KeyTooWide where it would reach further.
    """
    with tenant_transaction(tenant_id):
        who = standing_of(tenant_id, by, key=by_key)
        if who is None or Scope.ADMIN not in who.scopes:
            raise Forbidden(reason="an administrator makes keys")
        owner = Principal.objects.select_related("owner").get(id=by).owner
        if not set(scopes_of((role,))) <= set(who.scopes):
            raise RoleLacking(person=owner.email, role=role.value)
        if not answers and set(scopes_of((role,))) & ANSWERED_FOR:
            detail = "You answer for a key that decides or administers."
            raise InvalidInput(errors=[{"pointer": "/owner", "code": "owner-needed", "detail": detail}])
        limits, life = checked_limits(role, limits), expires_in or KEY_LIFE
        if by_key is not None:
            limits, life = _within_maker(by_key, limits, expires_in)
        return create_key(
            tenant_id, role, owner=owner if answers else None, label=label, expires_in=life, limits=limits,
            by=by,
        )  # fmt: skip


def _within_maker(
    by_key: UUID, limits: KeyLimits, expires_in: timedelta | None
) -> tuple[KeyLimits, timedelta]:
    """The limits and life of a key that another key makes: what is left open is as the maker's. Raises
    KeyTooWide for what goes beyond it."""
    maker = ApiKey.objects.get(id=by_key)
    ranges = tuple(maker.addresses)
    if limits.addresses and not has_ranges_within(limits.addresses, ranges):
        raise KeyTooWide(detail=f"this key is used from {', '.join(ranges)} only.")
    # The key is made within the second.
    left = None if maker.expires_at is None else maker.expires_at - database_now() - timedelta(seconds=1)
    if left is not None and expires_in is not None and expires_in > left:
        raise KeyTooWide(detail=f"this key ends at {maker.expires_at:%Y-%m-%d %H:%M} UTC.")
    life = expires_in or KEY_LIFE
    return limits._replace(addresses=limits.addresses or ranges), life if left is None else min(life, left)


def rotate_key(
    tenant_id: UUID,
    key_id: UUID,
    *,
    overlap: timedelta = NONE,
    expires_in: timedelta = KEY_LIFE,
    by: UUID | None = None,
    by_key: UUID | None = None,
) -> NewKey:
    """A new key in the place of this one, made by `by`, by way of the key `by_key` where it is a program;
    audited. Outermost verb: owns the transaction.

    It is the same principal's, so runs, rates and idempotency go on; its role and limits are those of the key
    before, which ends at once or, at the latest, after `overlap`. A key that decides or administers is
    rotated by the person who answers for it alone: the secret lets whoever sees it speak in their name. `by`
    None is the operator at the machine. Raises NotFound, KeyGone, RoleLacking, Forbidden, KeyTooWide.
    """
    with tenant_transaction(tenant_id):
        now = database_now()
        old = ApiKey.objects.select_for_update(of=("self",)).filter(id=key_id).first()
        if old is None:
            raise NotFound
        if old.revoked_at is not None:
            raise KeyGone
        principal, role = Principal.objects.select_related("owner").get(id=old.principal_id), Role(old.role)
        if Principal.objects.filter(kind="person", owner_id=principal.owner_id).exists():
            check_role(tenant_id, principal.owner, role)
        limits = KeyLimits(RunReach(old.runs), tuple(old.workflows), tuple(old.addresses))
        _check_own(old, principal, by)
        if by_key is not None:
            narrowed, expires_in = _within_maker(by_key, limits, None)
            if narrowed != limits:
                raise KeyTooWide(detail="the key to be rotated is used from any address, this one is not.")
        made = add_key(principal, fresh_id(), role, limits, expires_in, by=by, verb="key.rotate")
        _end_replaced_key(old, now, min(overlap, LONGEST_OVERLAP), by)
        return made


def _check_own(old: ApiKey, principal: Principal, by: UUID | None) -> None:
    """Raises Forbidden for whoever would be shown a secret that speaks in another person's name."""
    if by is not None and not may_rotate(old, principal.owner_id, Principal.objects.get(id=by).owner_id):
        raise Forbidden(reason="the person who answers for a key that decides or administers rotates it")


def may_rotate(key: ApiKey, owner_id: UUID, person_id: UUID) -> bool:
    """True if a person may be shown a new secret of the key that `owner_id` answers for: one that decides or
    administers speaks in the name of its owner."""
    return owner_id == person_id or not ANSWERED_FOR & {Scope(one) for one in key.scopes}


def _end_replaced_key(old: ApiKey, now: datetime, overlap: timedelta, by: UUID | None) -> None:
    row = ApiKey.objects.filter(id=old.id)
    before = {"expires_at": _format_expiry(old.expires_at), "revoked": False}
    after = {"expires_at": before["expires_at"], "revoked": True}
    if overlap <= NONE:
        row.update(revoked_at=now)
    else:
        # PostgreSQL's LEAST passes over an end that is not set.
        row.update(expires_at=Least(F("expires_at"), now + overlap))
        old.refresh_from_db(fields=["expires_at"])
        after = {"expires_at": _format_expiry(old.expires_at), "revoked": False}
    write_audit_entry(
        old.tenant_id, by, verb="key.revoke", object=f"key:{old.id}", before=before, after=after
    )


def _format_expiry(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()

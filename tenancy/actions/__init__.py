"""The verbs of tenancy: the only writers of tenants, people, keys and the audit log."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import Q

from tenancy.actions.relations import record_key_maker, record_tie
from tenancy.core.addresses import normalize_email_address
from tenancy.core.errors import NotFound, RoleLacking
from tenancy.core.keys import SECRET_BYTES, format_api_key, hash_key_secret, parse_api_key
from tenancy.core.queues import STANDING_QUEUES
from tenancy.core.reach import KeyLimits, checked_limits
from tenancy.core.relations import TieKind
from tenancy.core.roles import EVERY_QUEUE, Role, scopes_of
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, AuditEntry, Membership, Person, Principal, Queue, Tenant
from tenancy.people.queues import check_member_queues
from tenancy.queries import standing_of_person

TOUCHED_EVERY = timedelta(minutes=1)
KEY_LIFE = timedelta(days=90)


class NewKey(NamedTuple):
    """A key just made; `clear` is never shown again."""

    key: ApiKey
    clear: str


def create_tenant(
    slug: str, name: str, *, tenant_id: UUID | None = None, platform: bool = False, **more: Any
) -> Tenant:
    """A new tenant with the queues that every one has, and the first line of its audit log. Opens the
    tenant's transaction, or joins it where the caller has opened that of `tenant_id`. `platform`: a platform
    administrator opens it."""
    house = tenant_id or fresh_id()
    with tenant_transaction(house):
        made = Tenant.objects.create(id=house, slug=slug, name=name, **more)
        now = database_now()
        Queue.objects.bulk_create(
            [
                Queue(tenant_id=house, name=queue, description=shown, created_at=now)
                for queue, shown in STANDING_QUEUES.items()
            ]
        )
        after = {"slug": slug, "name": name}
        write_audit_entry(
            house, None, verb="tenant.create", object=f"tenant:{house}", before={}, after=after,
            platform=platform,
        )  # fmt: skip
        return made


def add_person(email: str, name: str, password: str | None = None, *, hashed: str | None = None) -> Person:
    """A new person; without a password, or one `hash_key_secret` already, they cannot sign in by one. Raises
    InvalidInput where the address is not plain ASCII."""
    person = Person(email=normalize_email_address(email), name=name)
    if hashed is None:
        person.set_password(password)
    else:
        person.password = hashed
    person.save(force_insert=True)
    return person


def add_member(
    tenant_id: UUID,
    person: Person,
    role: Role,
    *,
    queues: tuple[str, ...] = EVERY_QUEUE,
    max_amount: Decimal | None = None,
    max_risk: str = "",
    awaits_confirmation: bool = False,
    by: UUID | None = None,
    reason: str = "",
) -> Membership:
    """Give a person a role in a tenant, for these queues (none: none); they become a principal there.

    A role given by somebody relates the two for a day; one given by a command or the seed, without `by`,
    relates nobody. Joins or opens the tenant's transaction. Raises InvalidInput for a name that is no open
    queue, and IntegrityError when the person has the role already.
    """
    with tenant_transaction(tenant_id):
        check_member_queues(queues)
        principal_of(tenant_id, person)
        member = Membership.objects.create(
            tenant_id=tenant_id,
            person=person,
            role=role.value,
            queues=list(queues),
            max_amount=max_amount,
            max_risk=max_risk,
            awaits_confirmation=awaits_confirmation,
        )
        after: dict[str, Any] = {"person": str(person.id), "role": role.value, "queues": list(queues)}
        if awaits_confirmation:
            after["awaits_confirmation"] = True
        write_audit_entry(
            tenant_id, by, verb="member.add", object=f"member:{member.id}", before={}, after=after,
            reason=reason,
        )  # fmt: skip
        if by is not None:
            record_tie(tenant_id, TieKind.ROLE_GIVEN, person.id, by=by)
        return member


def remove_member(
    tenant_id: UUID, person: Person, role: Role, *, by: UUID | None = None, reason: str = ""
) -> bool:
    """Take a role from a person; whether they had it."""
    with tenant_transaction(tenant_id):
        removed, _ = Membership.objects.filter(person=person, role=role.value).delete()
        if removed:
            before = {"person": str(person.id), "role": role.value}
            write_audit_entry(
                tenant_id, by, verb="member.remove", object=f"person:{person.id}", before=before, after={},
                reason=reason,
            )  # fmt: skip
        return bool(removed)


def principal_of(tenant_id: UUID, person: Person) -> Principal:
    """The principal a person acts as in a tenant; made at first need. Joins the tenant's transaction."""
    found, _ = Principal.objects.get_or_create(
        tenant_id=tenant_id, kind="person", owner=person, defaults={"label": person.name}
    )
    return found


def create_key(
    tenant_id: UUID,
    role: Role,
    *,
    owner: Person | None = None,
    label: str = "",
    expires_in: timedelta = KEY_LIFE,
    limits: KeyLimits = KeyLimits(),  # noqa: B008 - a tuple that never changes
    by: UUID | None = None,
) -> NewKey:
    """A key with the scopes of a role, a service principal of its own (R-SEC-2), within its limits.

    Without `owner` a fresh one answers for it. What it does counts as the deed of `by` too, who sees its
    secret; of a key made by a command, whose `by` is None, of nobody else. Raises InvalidInput for limits
    that are none (R-SEC-11), and RoleLacking where the owner has no such role.
    """
    limits = checked_limits(role, limits)
    with tenant_transaction(tenant_id):
        if owner is not None:
            check_role(tenant_id, owner, role)
        key_id = fresh_id()
        answering = owner or add_person(f"key-{key_id.hex}@keys.invalid", label or f"{role.value} key")
        principal = Principal.objects.create(
            tenant_id=tenant_id, kind="key", owner=answering, label=label or f"{role.value} key"
        )
        return add_key(principal, key_id, role, limits, expires_in, by=by, verb="key.create")


def add_key(
    principal: Principal,
    key_id: UUID,
    role: Role,
    limits: KeyLimits,
    expires_in: timedelta,
    *,
    by: UUID | None,
    verb: str,
) -> NewKey:
    """A new secret for a principal, audited: `by` sees it. `limits` are checked ones. Joins the tenant's
    transaction."""
    clear = format_api_key(key_id, secrets.token_bytes(SECRET_BYTES))
    known = parse_api_key(clear)
    assert known is not None
    expires = database_now() + expires_in
    key = ApiKey.objects.create(
        id=key_id,
        tenant_id=principal.tenant_id,
        principal=principal,
        label=principal.label,
        role=role.value,
        scopes=[scope.value for scope in scopes_of((role,))],
        secret_hash=hash_key_secret(known.secret),
        runs=limits.runs_for(role).value,
        workflows=list(limits.workflows),
        addresses=list(limits.addresses),
        expires_at=expires,
    )
    after = {
        "role": role.value, "owner": str(principal.owner_id), "expires_at": expires.isoformat(),
        "runs": key.runs, "workflows": key.workflows, "addresses": key.addresses,
    }  # fmt: skip
    write_audit_entry(principal.tenant_id, by, verb=verb, object=f"key:{key.id}", before={}, after=after)
    if by is not None:
        record_key_maker(principal.tenant_id, principal.id, by=by)
    return NewKey(key, clear)


def check_role(tenant_id: UUID, person: Person, role: Role) -> None:
    """Raises RoleLacking where the person may not do here all that the role may. Joins the tenant's
    transaction."""
    standing = standing_of_person(tenant_id, person.id)
    held = standing.scopes if standing is not None else ()
    if not set(scopes_of((role,))) <= set(held):
        raise RoleLacking(person=person.email, role=role.value)


def revoke_key(tenant_id: UUID, key_id: UUID, *, by: UUID | None = None, reason: str = "") -> datetime:
    """Revoke a key; the same again keeps the first time. Raises NotFound."""
    with tenant_transaction(tenant_id):
        held = ApiKey.objects.select_for_update().filter(id=key_id).first()
        if held is None:
            raise NotFound
        if held.revoked_at is not None:
            return held.revoked_at
        now = database_now()
        ApiKey.objects.filter(id=key_id).update(revoked_at=now)
        write_audit_entry(
            tenant_id, by, verb="key.revoke", object=f"key:{key_id}", before={}, after={"revoked": True},
            reason=reason,
        )  # fmt: skip
        return now


def touch_key(key_id: UUID, now: datetime, last: datetime | None) -> None:
    """Note that a key was used, once a minute at the most. Joins the tenant's transaction.

    A database that takes no more writes (a full disk) still lets the caller read: the note is left out.
    """
    if last is not None and now - last <= TOUCHED_EVERY:
        return
    with suppress(DatabaseError), transaction.atomic():
        long_ago = Q(last_used_at=None) | Q(last_used_at__lt=now - TOUCHED_EVERY)
        ApiKey.objects.filter(long_ago, id=key_id).update(last_used_at=now)


def write_audit_entry(
    tenant_id: UUID,
    principal: UUID | None,
    *,
    verb: str,
    object: str,  # noqa: A002 - the audit log's own word for what was changed
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    reason: str = "",
    platform: bool = False,
) -> AuditEntry:
    """Write one line of the audit log (R-SEC-6). Joins the tenant's transaction, so the change and its
    line are one. `platform`: a platform administrator did it, whom the tenant does not know by name."""
    return AuditEntry.objects.create(
        tenant_id=tenant_id,
        principal=principal,
        verb=verb,
        object=object[:200],
        before=dict(before),
        after=dict(after),
        reason=reason[:1000],
        platform=platform,
    )

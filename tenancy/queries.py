"""Queries of tenants, principals and their permissions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import DateTimeField, Func, Q, QuerySet

from tenancy.core.errors import TenantSuspended
from tenancy.core.roles import SCOPES, Authority, Role, Scope, scopes_of
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, Membership, Principal, Tenant


class ClockTimestamp(Func):
    """The database's current time; NOW() would be the time at which the transaction began."""

    function = "clock_timestamp"
    output_field = DateTimeField()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalAuthority:
    """The current permissions of a principal in a tenant, read from the database (never from a request).

    `authorities` are the limits of each membership that may decide, one per membership.
    """

    principal: UUID
    owner: UUID
    roles: tuple[Role, ...]
    scopes: tuple[Scope, ...]
    authorities: tuple[Authority, ...] = ()


def tenant_of_key(key_id: UUID) -> UUID | None:
    """Return the tenant of a key; one of the closed list of look-ups that cross tenants."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT key_by_id(%s)", (key_id,))
        row = cursor.fetchone()
    return row[0] if row is not None else None


def tenants_of_person(person_id: UUID) -> list[UUID]:
    """Return the tenants in which a person has a role; one of the closed list as well."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT memberships_of(%s)", (person_id,))
        return [row[0] for row in cursor.fetchall()]


def check_tenant_open(tenant_id: UUID) -> None:
    """Check that the tenant is not suspended.

    Raises: TenantSuspended (R-SEC-10).
    """
    reason = Tenant.objects.filter(id=tenant_id).exclude(suspended_at=None).values_list("suspended_reason")
    if (row := reason.first()) is not None:
        raise TenantSuspended(reason=row[0])


def tenant_by_slug(slug: str) -> Tenant | None:
    """Return the tenant with this slug, or None."""
    return Tenant.objects.filter(slug=slug).first()


def all_tenants() -> list[UUID]:
    """Return every tenant's id, for maintenance that processes tenants one by one."""
    return list(Tenant.objects.order_by("id").values_list("id", flat=True))


def standing_of(tenant_id: UUID, principal_id: UUID, *, key: UUID | None = None) -> PrincipalAuthority | None:
    """Return the permissions of a principal, with this key of the principal or with any key.

    The result is None for a revoked or expired key, a person without a role or without confirmation, and an
    inactive person.
    """
    with tenant_transaction(tenant_id):
        principal = Principal.objects.filter(id=principal_id).first()
        if principal is None:
            return None
        if principal.kind == "key":
            return _key_standing(principal, key)
        return _person_standing(principal)


def standings_of(tenant_id: UUID, principals: Iterable[UUID]) -> list[PrincipalAuthority]:
    """Return `standing_of` for each of these principals that has one; people are read in one query."""
    with tenant_transaction(tenant_id):
        rows = list(Principal.objects.filter(id__in=list(principals)).order_by("id"))
        people = [row for row in rows if row.kind == "person"]
        held: dict[UUID, list[Membership]] = {row.owner_id: [] for row in people}
        for member in _acting_members(held):
            held[member.person_id].append(member)
        found = [_standing_by(row, held[row.owner_id]) for row in people]
        found += [_key_standing(row, None) for row in rows if row.kind == "key"]
        return [one for one in found if one is not None]


def standing_of_person(tenant_id: UUID, person_id: UUID) -> PrincipalAuthority | None:
    """Return the permissions of a signed-in person; None if the person has none in the tenant."""
    with tenant_transaction(tenant_id):
        principal = Principal.objects.filter(kind="person", owner_id=person_id).first()
        return None if principal is None else _person_standing(principal)


def tenants_by_id(ids: Iterable[UUID]) -> list[Tenant]:
    """Return these tenants, by name."""
    return list(Tenant.objects.filter(id__in=list(ids)).order_by("name", "id"))


def who_grants(tenant_id: UUID) -> list[str]:
    """Return the names of up to five administrators of a tenant, whom a person can ask for a role."""
    with tenant_transaction(tenant_id):
        admins = Membership.objects.filter(
            role=Role.ADMIN.value, person__is_active=True, awaits_confirmation=False
        )
        return list(admins.order_by("person__name").values_list("person__name", flat=True)[:5])


def _key_standing(principal: Principal, wanted: UUID | None) -> PrincipalAuthority | None:
    valid = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=ClockTimestamp()))
    held = ApiKey.objects.filter(valid, principal=principal, principal__owner__is_active=True)
    key = (held if wanted is None else held.filter(id=wanted)).order_by("-created_at", "-id").first()
    return None if key is None else standing_of_key(key, principal)


def standing_of_key(key: ApiKey, principal: Principal) -> PrincipalAuthority:
    """Return the permissions of a valid key. Joins the tenant's transaction.

    If a person of the tenant is responsible for the key, its permissions never exceed that person's current
    ones (Z8).
    """
    scopes = tuple(Scope(scope) for scope in key.scopes)
    authorities: tuple[Authority, ...] = (Authority(),)
    if Principal.objects.filter(kind="person", owner_id=principal.owner_id).exists():
        answering = _person_standing(principal)
        held = answering.scopes if answering is not None else ()
        scopes = tuple(scope for scope in scopes if scope in held)
        authorities = answering.authorities if answering is not None else ()
    return PrincipalAuthority(
        principal=principal.id, owner=principal.owner_id, roles=(Role(key.role),), scopes=scopes,
        authorities=authorities,
    )  # fmt: skip


def _person_standing(principal: Principal) -> PrincipalAuthority | None:
    return _standing_by(principal, list(_acting_members([principal.owner_id])))


def _acting_members(people: Iterable[UUID]) -> "QuerySet[Membership]":
    """Return the memberships that give these people permissions."""
    found = Membership.objects.filter(person_id__in=list(people), person__is_active=True)
    return found.filter(awaits_confirmation=False).order_by("role")


def _standing_by(principal: Principal, members: Sequence[Membership]) -> PrincipalAuthority | None:
    if not members:
        return None
    roles = tuple(Role(member.role) for member in members)
    deciding = [member for member in members if Scope.DECIDE in SCOPES[Role(member.role)]]
    return PrincipalAuthority(
        principal=principal.id, owner=principal.owner_id, roles=roles, scopes=scopes_of(roles),
        authorities=tuple(Authority(tuple(m.queues), m.max_amount, m.max_risk) for m in deciding),
    )  # fmt: skip

"""Reads of tenancy."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.db import connection

from tenancy.context import tenant
from tenancy.core.roles import Role, Scope, scopes_of
from tenancy.models import ApiKey, Membership, Principal, Tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a principal may do in a tenant right now, read from the database (never from a request).

    `queues` empty means every queue; `max_amount` None and `max_risk` "" mean no limit.
    """

    principal: UUID
    owner: UUID
    roles: tuple[Role, ...]
    scopes: tuple[Scope, ...]
    queues: tuple[str, ...] = ()
    max_amount: Decimal | None = None
    max_risk: str = ""


def tenant_of_key(key_id: UUID) -> UUID | None:
    """Whose key it is; one of the closed list of look-ups that cross tenants."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT key_by_id(%s)", (key_id,))
        row = cursor.fetchone()
    return row[0] if row is not None else None


def tenants_of_person(person_id: UUID) -> list[UUID]:
    """The tenants in which a person has a role; of the closed list too."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT memberships_of(%s)", (person_id,))
        return [row[0] for row in cursor.fetchall()]


def tenant_by_slug(slug: str) -> Tenant | None:
    """The tenant called `slug`."""
    return Tenant.objects.filter(slug=slug).first()


def standing_of(tenant_id: UUID, principal_id: UUID) -> Standing | None:
    """The standing of a principal; a revoked key and a person without a role have none."""
    with tenant(tenant_id):
        principal = Principal.objects.filter(id=principal_id).first()
        if principal is None:
            return None
        if principal.kind == "key":
            return _key_standing(principal)
        return _person_standing(principal)


def _key_standing(principal: Principal) -> Standing | None:
    key = ApiKey.objects.filter(principal=principal, revoked_at=None).first()
    if key is None:
        return None
    return Standing(
        principal=principal.id, owner=principal.owner_id, roles=(Role(key.role),),
        scopes=tuple(Scope(scope) for scope in key.scopes),
    )  # fmt: skip


def _person_standing(principal: Principal) -> Standing | None:
    members = list(Membership.objects.filter(person_id=principal.owner_id).order_by("role"))
    if not members:
        return None
    roles = tuple(Role(member.role) for member in members)
    deciding = [member for member in members if member.role in (Role.REVIEWER, Role.ADMIN)]
    unlimited = any(member.max_amount is None for member in deciding)
    amounts = [member.max_amount for member in deciding if member.max_amount is not None]
    return Standing(
        principal=principal.id, owner=principal.owner_id, roles=roles, scopes=scopes_of(roles),
        queues=() if any(not m.queues for m in deciding) else tuple(q for m in deciding for q in m.queues),
        max_amount=None if unlimited or not amounts else max(amounts),
        max_risk="" if any(not m.max_risk for m in deciding) else next((m.max_risk for m in deciding), ""),
    )  # fmt: skip

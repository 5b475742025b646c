"""People of a tenant, as its administrators manage them (R-SEC-1, R-SEC-2, R-SEC-6)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction

from tenancy.actions import add_member, add_person, audit, principal_of, remove_member
from tenancy.context import hold, tenant
from tenancy.core.addresses import folded
from tenancy.core.errors import InvalidInput, NotFound, TenancyError
from tenancy.core.roles import Role
from tenancy.models import Membership, Person
from tenancy.queries import tenants_of_person


class LastAdmin(TenancyError):
    """A tenant keeps at least one administrator."""

    code = "last-admin"


class Limits(NamedTuple):
    """How far a reviewer's word reaches. No queues: none, `*`: every queue; None and "": no limit."""

    queues: tuple[str, ...] = ()
    max_amount: Decimal | None = None
    max_risk: str = ""


class Invited(NamedTuple):
    """A person with a role here. `new`: they were not known anywhere before, and have no password yet."""

    person: Person
    member: Membership
    new: bool


def invite(tenant_id: UUID, email: str, name: str, role: Role, limits: Limits, *, by: UUID | None) -> Invited:
    """Give somebody a role by their address; made as a person if they are not known. Audited. Outermost verb:
    owns the transaction.

    Who is known elsewhere keeps name and password. Raises InvalidInput where they have the role already, and
    where the address is not plain ASCII.
    """
    with tenant(tenant_id):
        _hold(tenant_id)
        person = Person.objects.filter(email=folded(email)).first()
        new = person is None
        person = person or add_person(email, name)
        try:
            with transaction.atomic():
                member = add_member(tenant_id, person, role, by=by, **limits._asdict())
        except IntegrityError:
            detail = f"{email} has the role {role.value} already."
            raise InvalidInput(errors=[{"pointer": "/role", "code": "taken", "detail": detail}]) from None
        return Invited(person, member, new)


def change_limits(
    tenant_id: UUID, member_id: UUID, limits: Limits, *, by: UUID | None, reason: str
) -> Membership:
    """Set how far the word of one membership reaches; audited. Outermost verb. Raises NotFound."""
    with tenant(tenant_id):
        _hold(tenant_id)
        member = Membership.objects.filter(id=member_id).first()
        if member is None:
            raise NotFound
        before = _limits(member)
        member.queues, member.max_amount, member.max_risk = (
            list(limits.queues), limits.max_amount, limits.max_risk,
        )  # fmt: skip
        if (after := _limits(member)) != before:
            member.save(update_fields=["queues", "max_amount", "max_risk"])
            audit(
                tenant_id, by, verb="member.change", object=f"member:{member.id}", before=before, after=after,
                reason=reason,
            )  # fmt: skip
        return member


def remove_role(tenant_id: UUID, member_id: UUID, *, by: UUID | None, reason: str) -> Person:
    """Take one role from a person; audited. Their keys lose what it brought. Outermost verb.

    Raises NotFound, and LastAdmin for the only administrator.
    """
    with tenant(tenant_id):
        _hold(tenant_id)
        member = Membership.objects.select_related("person").filter(id=member_id).first()
        if member is None:
            raise NotFound
        role = Role(member.role)
        others = Membership.objects.filter(role=Role.ADMIN.value, person__is_active=True).exclude(
            id=member.id
        )
        if role is Role.ADMIN and not others.exists():
            raise LastAdmin
        remove_member(tenant_id, member.person, role, by=by, reason=reason)
        return member.person


def may_get_link(tenant_id: UUID, person: Person) -> bool:
    """Whether an administrator of this tenant may hand out a link that sets the person's password: only to
    somebody who never signed in and belongs nowhere else. Whoever belongs elsewhere could be taken over."""
    if person.has_usable_password() or person.last_login is not None or not person.is_active:
        return False
    return tenants_of_person(person.id) == [tenant_id]


def note_link(tenant_id: UUID, person: Person, *, by: UUID | None) -> None:
    """Write down that a link was shown. Opens the tenant's transaction itself."""
    with tenant(tenant_id):
        audit(
            tenant_id, by, verb="person.link", object=f"person:{person.id}", before={},
            after={"email": person.email},
        )  # fmt: skip


def note_sign_in(person: Person, *, by: Sequence[str], refused: str = "") -> None:
    """Write down that somebody came in, by what, or why they did not; in each of their tenants. Opens each
    tenant's transaction itself."""
    verb = "person.refuse" if refused else "person.sign_in"
    _note(person, verb, {"by": list(by)}, reason=refused)


def note_tie(person: Person, *, provider: str, account: str) -> None:
    """Write down that an account of a provider signs somebody in from now on; in each of their tenants. Opens
    each tenant's transaction itself."""
    _note(person, "person.tie", {"provider": provider, "account": account})


def _note(person: Person, verb: str, after: Mapping[str, Any], *, reason: str = "") -> None:
    for house in tenants_of_person(person.id):
        with tenant(house):
            audit(
                house, principal_of(house, person).id, verb=verb, object=f"person:{person.id}", before={},
                after=after, reason=reason,
            )  # fmt: skip


def _hold(tenant_id: UUID) -> None:
    """One change of the members at a time: two administrators must not remove each other at once."""
    hold(f"members:{tenant_id}")


def _limits(member: Membership) -> dict[str, Any]:
    amount = member.max_amount
    return {
        "queues": list(member.queues),
        "max_amount": None if amount is None else str(amount),
        "max_risk": member.max_risk,
    }

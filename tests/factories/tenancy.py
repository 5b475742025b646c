"""A fresh tenant and the same cast in every test: who submits, who approves, who only looks, who is a
stranger."""

from dataclasses import dataclass
from uuid import UUID

from tenancy.actions import NewKey, add_member, add_person, create_key, create_tenant, principal_of
from tenancy.context import tenant
from tenancy.core.roles import Role
from tenancy.ids import fresh_id
from tenancy.models import Person, Principal, Tenant


@dataclass(frozen=True, kw_only=True)
class Somebody:
    """A person of the cast with the principal they act as."""

    person: Person
    principal: Principal

    @property
    def id(self) -> UUID:
        """The principal's id."""
        return self.principal.id


@dataclass(frozen=True, kw_only=True)
class Cast:
    """The people of a tenant, and a stranger from another."""

    submitter: Somebody
    approver: Somebody
    second_approver: Somebody
    operator: Somebody
    admin: Somebody
    auditor: Somebody
    stranger: Somebody
    client_key: NewKey
    other_tenant: Tenant


def make_tenant(**more: object) -> Tenant:
    """A tenant nobody else uses."""
    slug = f"t-{fresh_id().hex}"
    return create_tenant(slug, slug, **more)


def make_somebody(house: Tenant, role: Role) -> Somebody:
    """A person with a role in a tenant."""
    person = add_person(f"{fresh_id().hex}@people.example", f"the {role.value}")
    add_member(house.id, person, role)
    with tenant(house.id):
        return Somebody(person=person, principal=principal_of(house.id, person))


def make_people(house: Tenant) -> Cast:
    """The cast of a tenant."""
    elsewhere = make_tenant()
    return Cast(
        submitter=make_somebody(house, Role.OPERATOR), approver=make_somebody(house, Role.REVIEWER),
        second_approver=make_somebody(house, Role.REVIEWER), operator=make_somebody(house, Role.OPERATOR),
        admin=make_somebody(house, Role.ADMIN), auditor=make_somebody(house, Role.AUDITOR),
        stranger=make_somebody(elsewhere, Role.REVIEWER), client_key=create_key(house.id, Role.CLIENT),
        other_tenant=elsewhere,
    )  # fmt: skip

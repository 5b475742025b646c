"""A fresh tenant and the same cast in every test: who submits, who approves, who only looks, who is a
stranger."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

from django.db import connections

from tenancy.actions import NewKey, add_member, add_person, create_key, create_tenant, principal_of
from tenancy.core.reach import KeyLimits, RunReach
from tenancy.core.roles import EVERY_QUEUE, Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership, Person, Principal, Tenant

T = TypeVar("T")


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
    """The people of a tenant, and a stranger from another.

    Who and what few tests ask for is made when it is asked for: every test would have to wait for it.
    """

    house: Tenant
    submitter: Somebody
    approver: Somebody
    second_approver: Somebody
    operator: Somebody
    admin: Somebody
    auditor: Somebody

    @cached_property
    def stranger(self) -> Somebody:
        """A reviewer of another tenant."""
        elsewhere = self.other_tenant
        return apart(lambda: make_staff(elsewhere, Role.REVIEWER)[0])

    @cached_property
    def client_key(self) -> NewKey:
        """A program's key of this tenant, which reaches all of its runs."""
        return apart(lambda: create_key(self.house.id, Role.CLIENT, limits=KeyLimits(runs=RunReach.TENANT)))

    @cached_property
    def other_tenant(self) -> Tenant:
        """The tenant next door."""
        return apart(make_tenant)


def apart(work: Callable[[], T]) -> T:
    """What `work` gives in a thread and on a connection of its own: the test may be in the middle of a
    transaction, or a browser keep an event loop in its thread."""

    def close_after() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(close_after).result()


def make_tenant(**more: Any) -> Tenant:
    """A tenant nobody else uses."""
    slug = f"t-{fresh_id().hex}"
    return create_tenant(slug, slug, **more)


def make_somebody(house: Tenant, role: Role) -> Somebody:
    """A person with a role in a tenant."""
    person = add_person(f"{fresh_id().hex}@people.example", f"the {role.value}")
    add_member(house.id, person, role)
    with tenant_transaction(house.id):
        return Somebody(person=person, principal=principal_of(house.id, person))


def make_staff(house: Tenant, *roles: Role) -> list[Somebody]:
    """A person for each role, in order: the rows `make_somebody` makes one by one, in five statements."""
    people = [Person(email=f"{fresh_id().hex}@people.example", name=f"the {role.value}") for role in roles]
    for person in people:
        person.set_unusable_password()
    Person.objects.bulk_create(people)
    with tenant_transaction(house.id):
        acting = [
            Principal(tenant=house, kind="person", owner=person, label=person.name) for person in people
        ]
        members = [
            Membership(tenant=house, person=person, role=role.value, queues=list(EVERY_QUEUE))
            for person, role in zip(people, roles, strict=True)
        ]
        Principal.objects.bulk_create(acting)
        Membership.objects.bulk_create(members)
        AuditEntry.objects.bulk_create([_joined(member) for member in members])
    return [Somebody(person=one, principal=two) for one, two in zip(people, acting, strict=True)]


def _joined(member: Membership) -> AuditEntry:
    after = {"person": str(member.person_id), "role": member.role, "queues": member.queues}
    name = f"member:{member.id}"
    return AuditEntry(tenant_id=member.tenant_id, verb="member.add", object=name, before={}, after=after)


def make_people(house: Tenant) -> Cast:
    """The cast of a tenant."""
    submitter, approver, second, operator, admin, auditor = make_staff(
        house, Role.OPERATOR, Role.REVIEWER, Role.REVIEWER, Role.OPERATOR, Role.ADMIN, Role.AUDITOR
    )
    return Cast(
        house=house, submitter=submitter, approver=approver, second_approver=second, operator=operator,
        admin=admin, auditor=auditor,
    )  # fmt: skip

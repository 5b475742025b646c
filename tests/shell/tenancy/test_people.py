"""Tenants and people: what administrators change is in the audit log; the demonstration seeds once."""

import pytest
from django.db import IntegrityError

from tenancy.actions import add_member, add_person, create_tenant, principal_of, remove_member
from tenancy.core.demo_users import CAST, HOUSES, PASSWORD
from tenancy.core.roles import Role, Scope
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.demo_seed import seed_people
from tenancy.models import AuditEntry, Membership, Person, Principal
from tenancy.queries import standing_of
from tests.conftest import House
from tests.proves import proves


@proves("R-SEC-6", part="tenants")
def test_a_tenant_begins_with_a_line_in_its_log(house: House) -> None:
    made = create_tenant(f"x-{fresh_id().hex}", "X")
    with tenant_transaction(made.id):
        line = AuditEntry.objects.get()
    assert (line.verb, line.object, line.after["name"]) == ("tenant.create", f"tenant:{made.id}", "X")


@proves("R-SEC-6", part="members")
def test_a_role_given_and_taken_is_two_lines(house: House) -> None:
    person, admin = house.people.operator.person, house.people.admin.id
    add_member(house.tenant.id, person, Role.ADMIN, by=admin)
    assert remove_member(house.tenant.id, person, Role.ADMIN, by=admin)
    assert not remove_member(house.tenant.id, person, Role.ADMIN, by=admin)
    with tenant_transaction(house.tenant.id):
        lines = list(AuditEntry.objects.filter(principal=admin).order_by("at", "id"))
    assert [line.verb for line in lines] == ["member.add", "member.remove"]
    assert lines[0].after["role"] == lines[1].before["role"] == "admin"


@proves("R-SEC-1", part="one role once")
def test_a_role_is_held_once(house: House) -> None:
    with pytest.raises(IntegrityError):
        add_member(house.tenant.id, house.people.approver.person, Role.REVIEWER)


@proves("R-SEC-1", part="several roles")
def test_roles_of_a_person_add_up(house: House) -> None:
    add_member(house.tenant.id, house.people.auditor.person, Role.REVIEWER)
    standing = standing_of(house.tenant.id, house.people.auditor.id)
    assert standing is not None
    assert standing.roles == (Role.AUDITOR, Role.REVIEWER)
    assert standing.scopes == (Scope.READ, Scope.INSPECT, Scope.DECIDE, Scope.REVEAL)


@proves("Z1", part="standing")
def test_a_stranger_has_no_standing_here(house: House) -> None:
    assert standing_of(house.tenant.id, house.people.stranger.id) is None


def test_a_person_is_one_principal_in_a_tenant(house: House) -> None:
    with tenant_transaction(house.tenant.id):
        again = principal_of(house.tenant.id, house.people.admin.person)
        assert again.id == house.people.admin.id
        assert Principal.objects.filter(owner=house.people.admin.person).count() == 1


def test_an_address_is_one_person_whatever_its_case(house: House) -> None:
    name = f"{fresh_id().hex}@people.example"
    person = add_person(name.upper(), "somebody", "a long pass phrase")
    assert Person.objects.get_by_natural_key(name.title()) == person
    assert person.check_password("a long pass phrase")
    with pytest.raises(IntegrityError):
        add_person(name, "somebody else")


def test_a_person_without_a_password_cannot_sign_in_by_one(house: House) -> None:
    assert not add_person(f"{fresh_id().hex}@people.example", "nobody").has_usable_password()


def test_the_demonstration_is_seeded_once(house: House) -> None:
    first, second = seed_people(), seed_people()
    assert [one.id for one in first] == [one.id for one in second]
    assert [one.slug for one in first] == [slug for slug, _ in HOUSES]
    for demo in first:
        with tenant_transaction(demo.id):
            held = Membership.objects.values_list("person__email", "role")
            assert sorted(held) == sorted(
                (f"{title}@{demo.slug}.example", role.value) for title, role, _ in CAST
            )


def test_the_demonstration_has_every_role_and_two_for_each_gate(house: House) -> None:
    assert {role for _, role, _ in CAST} == set(Role)
    reviewers = [queues for _, role, queues in CAST if role is Role.REVIEWER]
    assert reviewers.count(("*",)) == reviewers.count(("finance",)) == 2
    seed_people()
    assert Person.objects.get_by_natural_key("reviewer@demo.example").check_password(PASSWORD)

"""Somebody who is known, and whose first-password link somebody saw in another tenant, does nothing here
before an administrator confirms them (A8, R-APPR-5)."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from approvals.queries.assignment import who_may
from tenancy.actions import add_member, add_person, create_key, principal_of
from tenancy.actions.confirmation import RelatedToPerson, confirm_person
from tenancy.actions.first_administrator import AdministratorThere, invite_first_administrator
from tenancy.actions.people import (
    LastAdmin,
    Limits,
    invite_member,
    remove_role,
    show_link,
)
from tenancy.core.errors import RoleLacking
from tenancy.core.roles import EVERY_QUEUE, Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership, Person, Principal
from tenancy.people.member_queries import another_admin
from tenancy.people.platform_admins import PlatformActor, count_administrators
from tenancy.people.relations import are_related
from tenancy.queries import standing_of, standing_of_person
from tests.conftest import House
from tests.doors.api.program import Program
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.people import text
from tests.doors.test_one_administrator import ADDRESS, SECRET, set_password
from tests.doors.test_one_administrator import invite as invite_on_page
from tests.factories.approvals import open_desk
from tests.factories.platform import make_platform_admin
from tests.factories.tenancy import Somebody, make_somebody, make_tenant
from tests.proves import proves
from tests.servers import TestServers


@dataclass(frozen=True, kw_only=True)
class Known:
    """A person of another tenant whose password an administrator there set, and that administrator's
    browser, signed in as the person."""

    person: Person
    seer: Somebody
    client: Client


@pytest.fixture
def known(house: House) -> Known:
    """Invited, link shown and used in the tenant next door."""
    seer = make_somebody(house.people.other_tenant, Role.ADMIN)
    found = ADDRESS.search(text(invite_on_page(seer, "Victim")))
    assert found is not None
    client = set_password(found[2])
    person = Person.objects.get(email=f"victim-{seer.id.hex}@people.example")
    client.post("/account/login/", {"login": person.email, "password": SECRET}, follow=True)
    assert client.session.get("_auth_user_id") == str(person.id)
    return Known(person=person, seer=seer, client=client)


def add_on_page(house: House, person: Person, role: str = "admin") -> Any:
    """This tenant's administrator adds the person by their address."""
    given = {"email": person.email, "name": person.name, "role": role, "queues": "*"}
    return browser(house.people.admin).post("/tenant/people/invite", given, follow=True)


def principal(house_id: UUID, person: Person) -> Principal:
    """Whom a person acts as in a tenant."""
    with tenant_transaction(house_id):
        return principal_of(house_id, person)


@proves("A8", part="a known person whose link was seen elsewhere does nothing before a confirmation")
def test_finding_1_who_saw_a_link_in_another_tenant_does_nothing_here_as_the_invited(
    house: House, known: Known
) -> None:
    house_id = house.tenant.id
    page = words(add_on_page(house, known.person))
    turned = known.client.post("/tenant/switch", {"tenant": str(house_id)})
    assert (turned.status_code, "before an administrator there confirms you" in words(turned)) == (403, True)
    assert house.people.admin.person.email not in words(known.client.get("/tenant/people"))
    assert "they do nothing here before you or another administrator confirm them" in page
    assert "To be confirmed" in page
    assert standing_of_person(house_id, known.person.id) is None
    acting = principal(house_id, known.person)
    assert standing_of(house_id, acting.id) is None
    with pytest.raises(RoleLacking):
        create_key(house_id, Role.REVIEWER, owner=known.person)
    with open_desk(house) as desk, tenant_transaction(house_id):
        assert acting.id not in dict(who_may(desk.ask()))
        assert not another_admin(house.people.admin.id)
    # Nor is one who waits the administrator that a tenant keeps.
    with tenant_transaction(house_id):
        only = Membership.objects.get(person=house.people.admin.person)
    with pytest.raises(LastAdmin):
        remove_role(house_id, only.id, by=None, reason="So")


@proves("A8", part="the inviter lets a known person act, and stays related")
def test_finding_1_the_inviter_lets_the_invited_act_with_a_reason_and_stays_related(
    house: House, known: Known
) -> None:
    house_id, admin = house.tenant.id, house.people.admin
    add_on_page(house, known.person, "reviewer")
    where = f"/tenant/people/{known.person.id}/confirm"
    assert where in text(browser(admin).get("/tenant/people"))
    assert browser(admin).post(where, {"reason": " "}).status_code == 400
    assert browser(admin).post(where, {"reason": "I called them."}).status_code == 302
    assert standing_of_person(house_id, known.person.id) is not None
    assert known.client.post("/tenant/switch", {"tenant": str(house_id)}).status_code == 302
    other = make_somebody(house.tenant, Role.ADMIN)
    with tenant_transaction(house_id):
        assert are_related(known.person.id, admin.person.id)
        assert are_related(known.person.id, known.seer.person.id)
        line = AuditEntry.objects.get(verb="person.confirm")
        assert (line.reason, line.after["related"]) == ("I called them.", True)
    with pytest.raises(RelatedToPerson):
        confirm_person(house_id, known.person.id, by=admin.id, reason="Again.")
    confirm_person(house_id, known.person.id, by=other.id, reason="I called them too.")
    with tenant_transaction(house_id):
        assert not are_related(known.person.id, known.seer.person.id)


def test_finding_1_an_unrelated_administrator_confirms_once_for_both(house: House, known: Known) -> None:
    house_id, other = house.tenant.id, make_somebody(house.tenant, Role.ADMIN)
    add_on_page(house, known.person, "reviewer")
    confirm_person(house_id, known.person.id, by=other.id, reason="")
    assert standing_of_person(house_id, known.person.id) is not None
    # A further role follows the first, and one given after all were taken waits for nothing that is settled.
    invite_member(house_id, known.person.email, "", Role.OPERATOR, Limits(), by=house.people.admin.id)
    with tenant_transaction(house_id):
        assert not Membership.objects.filter(person=known.person, awaits_confirmation=True).exists()
        held = list(Membership.objects.filter(person=known.person).values_list("id", flat=True))
    for one in held:
        remove_role(house_id, one, by=None, reason="So")
    again = invite_member(house_id, known.person.email, "", Role.CLIENT, Limits(), by=house.people.admin.id)
    assert not again.member.awaits_confirmation


def test_finding_1_who_is_related_to_the_seer_lets_nobody_act(house: House, known: Known) -> None:
    """Neither the seer, who is a member here too, nor whom they made an administrator here."""
    house_id, cast = house.tenant.id, house.people
    add_member(house_id, known.seer.person, Role.ADMIN)
    seer = principal(house_id, known.seer.person)
    friend = make_somebody(house.tenant, Role.REVIEWER)
    add_member(house_id, friend.person, Role.ADMIN, by=seer.id)
    add_on_page(house, known.person, "reviewer")
    for related in (seer, friend):
        with pytest.raises(RelatedToPerson):
            confirm_person(house_id, known.person.id, by=related.id, reason="It is them.")
    assert standing_of_person(house_id, known.person.id) is None
    confirm_person(house_id, known.person.id, by=cast.admin.id, reason="I met them.")
    assert standing_of_person(house_id, known.person.id) is not None


def test_finding_1_a_further_role_waits_as_the_first_does(house: House, known: Known) -> None:
    house_id = house.tenant.id
    add_on_page(house, known.person, "client")
    second = invite_member(
        house_id, known.person.email, "", Role.REVIEWER, Limits(), by=house.people.admin.id
    )
    assert second.member.awaits_confirmation
    assert standing_of_person(house_id, known.person.id) is None


def test_finding_1_what_the_inviter_alone_saw_withholds_nothing(house: House) -> None:
    """An administrator of both tenants could invite an address of their own instead."""
    cast, elsewhere = house.people, house.people.other_tenant
    add_member(elsewhere.id, cast.admin.person, Role.ADMIN)
    there = principal(elsewhere.id, cast.admin.person)
    address = f"both-{elsewhere.id.hex}@people.example"
    person = invite_member(
        elsewhere.id, address, "Both", Role.REVIEWER, Limits(EVERY_QUEUE), by=there.id
    ).person
    show_link(elsewhere.id, person, by=there.id)
    here = invite_member(
        house.tenant.id, address, "Both", Role.REVIEWER, Limits(EVERY_QUEUE), by=cast.admin.id
    )
    assert not here.member.awaits_confirmation
    with tenant_transaction(house.tenant.id):
        assert are_related(person.id, cast.admin.person.id)


@proves("A8", part="a known person by the API")
def test_finding_1_a_program_sees_who_waits_and_confirms_them(house: House, known: Known) -> None:
    admin = create_key(house.tenant.id, Role.ADMIN, owner=house.people.admin.person, by=house.people.admin.id)
    program = Program(clear=admin.clear)
    body = {"email": known.person.email, "name": "Victim", "role": "reviewer", "queues": ["*"]}
    made = program.post("/members", body).json()["member"]
    assert (made["awaits_confirmation"], made["to_confirm"]) == (True, True)
    done = program.post(f"/members/{known.person.id}/confirm", {"reason": "I met them."})
    assert (done.status_code, done.json()["awaits_confirmation"], done.json()["to_confirm"]) == (
        200, False, False,
    )  # fmt: skip


def test_finding_1_the_shell_lets_a_person_act_where_no_administrator_can(
    known: Known, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first administrator whom somebody can sign in as does not hold a tenant of their own by it."""
    fresh = make_tenant()
    invited = invite_first_administrator(fresh.id, known.person.email, "Victim", by=None).invited
    assert invited.member.awaits_confirmation
    assert standing_of_person(fresh.id, known.person.id) is None
    # Another may be invited in their place, as nobody administers yet.
    address = f"{re.sub('-', '', str(fresh.id))}@people.example"
    second = invite_first_administrator(fresh.id, address, "Other", by=None).invited
    assert not second.member.awaits_confirmation
    asked = ("person", "confirm", known.person.email, "--tenant", fresh.slug, "--reason")
    with pytest.raises(CommandError):
        call_command(*asked, " ")
    call_command(*asked, "Met them")
    assert "can act" in capsys.readouterr().err
    assert standing_of_person(fresh.id, known.person.id) is not None
    with pytest.raises(AdministratorThere):
        invite_first_administrator(fresh.id, "late@people.example", "Late", by=None)
    with pytest.raises(CommandError):
        call_command(*asked, "Again")


def test_a_known_person_whose_link_nobody_saw_acts_at_once(house: House) -> None:
    person = add_person(f"quiet-{house.tenant.id.hex}@people.example", "Quiet", SECRET)
    add_member(house.people.other_tenant.id, person, Role.CLIENT)
    add_on_page(house, person, "reviewer")
    assert standing_of_person(house.tenant.id, person.id) is not None


@proves("R-SEC-10", part="who has yet to be confirmed is no administrator yet")
def test_finding_1_a_platform_administrator_may_invite_another_while_the_first_waits(
    known: Known, servers: TestServers
) -> None:
    fresh, somebody = make_tenant(), make_platform_admin(servers).person
    invite_first_administrator(fresh.id, known.person.email, "Victim", by=PlatformActor(somebody.id))
    found = count_administrators(somebody.id, [fresh.id])[fresh.id]
    assert (found.total, found.waiting) == (1, 1)

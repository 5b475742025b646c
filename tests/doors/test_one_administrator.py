"""One administrator alone, over HTTP: neither a key that nobody answers for nor an invited person makes them
two (A8, R-APPR-5); and what the pages do about the link for a first password."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.core import mail
from django.test import Client
from pytest_django import Settings

from approvals.models import Request
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Person, PersonTie
from tenancy.notifications.notices import send_notices_of
from tenancy.people.relations import are_related
from tests.conftest import House
from tests.doors.api.program import Program
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.people import text
from tests.doubles.company import Company
from tests.factories.approvals import Desk, open_desk
from tests.factories.tenancy import Somebody, make_somebody
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

SECRET = "correct horse battery staple"
ADDRESS = re.compile(r"(https?://[^/<\s]+)?(/account/password/reset/key/[^<\s]+)")
TASK = {"workflow": "support-refund", "goal": {"objective": "Refund it", "inputs": {"order_id": "A-1001"}}}


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        yield opened


def invite(admin: Somebody, name: str = "Newcomer", role: str = "reviewer") -> Any:
    """An administrator adds somebody on the page."""
    given = {"email": f"{name.lower()}-{admin.id.hex}@people.example", "name": name, "role": role}
    return browser(admin).post("/tenant/people/invite", given)


def newcomer(admin: Somebody, name: str = "Newcomer") -> Person:
    """Whom they added."""
    return Person.objects.get(email=f"{name.lower()}-{admin.id.hex}@people.example")


def set_password(path: str) -> Client:
    """Whoever has the link uses it; their browser, signed in."""
    client = Client(headers={"accept": "text/html"})
    page = client.get(path, follow=True)
    client.post(page.redirect_chain[-1][0], {"password1": SECRET, "password2": SECRET}, follow=True)
    return client


def signed_in(person: Person) -> Client:
    """The browser of somebody who signs in by their password."""
    client = Client(headers={"accept": "text/html"})
    answer = client.post("/account/login/", {"login": person.email, "password": SECRET}, follow=True)
    assert answer.status_code == 200
    assert client.session.get("_auth_user_id") == str(person.id)
    return client


def brought_along(admin: Somebody) -> tuple[Person, Client]:
    """A reviewer whom the administrator invites, and whose link they use themselves."""
    found = ADDRESS.search(text(invite(admin)))
    assert found is not None
    set_password(found[2])
    person = newcomer(admin)
    return person, signed_in(person)


def approve(client: Client, request: Request, typed: str) -> Any:
    """Press the button by what the page would send."""
    given = {"decision": "approve", "digest": request.packet_digest, "typed": typed}
    return client.post(f"/approvals/{request.id}", given)


def open_request(world: World, run: UUID) -> Request:
    """What a run waits for."""
    world.drive(run)
    (request,) = world.open_requests(run)
    return request


@proves("A8", part="an ownerless key is no second person")
def test_an_administrator_does_not_approve_the_run_of_a_key_they_made(world: World, company: Company) -> None:
    admin = world.people.admin
    client = browser(admin)
    made = client.post("/tenant/keys", {"label": "mine", "role": "client", "days": "90", "owner": "fresh"})
    (clear,) = re.findall(r"ilk_[0-9a-f]{32}_[0-9a-z]+", text(made))[:1]
    run = UUID(Program(clear=clear).post("/tasks", TASK).json()["run"]["id"])
    request = open_request(world, run)
    answer = approve(client, request, str(request.amount))
    assert answer.status_code == 403
    assert "Nobody decides on their own run" in words(answer)
    own = client.post("/tenant/keys", {"label": "too", "role": "admin", "days": "90", "owner": "me"})
    (second,) = re.findall(r"ilk_[0-9a-f]{32}_[0-9a-z]+", text(own))[:1]
    said = Program(clear=second).post(f"/approvals/{request.id}/decisions", {"decision": "approve"})
    assert (said.status_code, said.json()["data"]["rule"]) == (403, "own_run")
    world.drive(run)
    assert company.effects("payments") == []
    assert approve(browser(world.people.approver), request, str(request.amount)).status_code == 302


@proves("A8", part="an invited person is no second person")
def test_an_administrator_does_not_approve_their_own_run_as_the_person_they_invited(
    world: World, company: Company
) -> None:
    admin = world.people.admin
    _, guest = brought_along(admin)
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"}, by=admin)
    request = open_request(world, run)
    answer = approve(guest, request, str(request.amount))
    assert answer.status_code == 403
    assert "You are related to a person who submitted the run" in words(answer)
    world.drive(run)
    assert company.effects("payments") == []


@proves("R-APPR-5", part="an invited person is no second in a quorum")
def test_an_administrator_and_the_person_they_invited_are_no_quorum_of_two(desk: Desk) -> None:
    admin = desk.house.people.admin
    _, guest = brought_along(admin)
    request = desk.ask(quorum=2)
    assert approve(browser(admin), request, "150.00").status_code == 302
    answer = approve(guest, request, "150.00")
    assert answer.status_code == 403
    assert (desk.again(request).status, len(desk.said(request))) == ("pending", 1)
    assert approve(browser(desk.house.people.approver), request, "150.00").status_code == 302
    assert desk.again(request).outcome == "approve"


@proves("A8", part="a seen link is on record")
def test_a_link_that_is_shown_relates_whoever_sees_it(desk: Desk) -> None:
    admin = desk.house.people.admin
    answer = invite(admin)
    assert ADDRESS.search(text(answer))
    assert "count as one person in approvals" in words(answer)
    person = newcomer(admin)
    with tenant_transaction(desk.id):
        kinds = list(PersonTie.objects.filter(person=person).order_by("at").values_list("kind", "by"))
        assert kinds == [("role_given", admin.person.id), ("link_seen", admin.person.id)]
    shown = words(browser(admin).get("/tenant/people"))
    assert "until an administrator related to neither confirms Newcomer" in shown


@proves("A8", part="the link goes to its reader alone")
def test_a_link_goes_to_the_invited_address_where_mail_is_set_up(desk: Desk, settings: Settings) -> None:
    settings.INTERLOCK_SENDS_MAIL = True
    admin = desk.house.people.admin
    answer = invite(admin)
    assert (answer.status_code, answer["Location"]) == (302, "/tenant/people")
    person = newcomer(admin)
    again = browser(admin).post(f"/tenant/people/{person.id}/link", follow=True)
    assert not ADDRESS.search(text(again))
    assert f"on its way to {person.email}" in words(again)
    with tenant_transaction(desk.id):
        assert list(PersonTie.objects.values_list("kind", flat=True)) == ["role_given"]
        lines = AuditEntry.objects.filter(verb="person.link")
        assert [line.after["link"] for line in lines] == ["mailed", "mailed"]
    assert send_notices_of(desk.id) == 2
    letter = mail.outbox[-1]
    assert letter.to == [person.email]
    found = ADDRESS.search(str(letter.body))
    assert found is not None
    set_password(found[2])
    assert Person.objects.get(id=person.id).check_password(SECRET)


@proves("A8", part="confirmed by somebody unrelated")
def test_an_unrelated_administrator_confirms_the_person_and_the_inviter_does_not(desk: Desk) -> None:
    admin, other = desk.house.people.admin, make_somebody(desk.house.tenant, Role.ADMIN)
    found = ADDRESS.search(text(invite(admin)))
    assert found is not None
    person = newcomer(admin)
    where = f"/tenant/people/{person.id}/confirm"
    early = browser(other).post(where, {"reason": "I asked."})
    assert (early.status_code, "has not set a password yet" in words(early)) == (409, True)
    set_password(found[2])
    for client in (browser(admin), signed_in(person)):
        assert client.post(where, {"reason": "It is them."}).status_code == 403
    assert where not in text(browser(admin).get("/tenant/people"))
    with tenant_transaction(desk.id):
        assert are_related(person.id, admin.person.id)
    page = browser(other).get("/tenant/people")
    assert where in text(page)
    assert browser(other).post(where, {"reason": "I asked them."}).status_code == 302
    with tenant_transaction(desk.id):
        entry = AuditEntry.objects.get(verb="person.confirm")
        assert (entry.principal, entry.reason) == (other.id, "I asked them.")
        kinds = PersonTie.objects.filter(person=person).order_by("at").values_list("kind", flat=True)
        assert list(kinds) == ["role_given", "link_seen", "confirmed"]
    again = browser(other).post(where, {"reason": "Once more."})
    assert again.status_code == 409


def test_a_person_whose_link_nobody_saw_needs_no_confirmation(desk: Desk) -> None:
    other = browser(desk.house.people.admin).post(
        f"/tenant/people/{desk.house.people.operator.person.id}/confirm", {"reason": "Why not."}
    )
    assert other.status_code == 409
    assert (
        browser(desk.house.people.approver)
        .post(f"/tenant/people/{desk.house.people.operator.person.id}/confirm", {"reason": "Mine."})
        .status_code
        == 403
    )

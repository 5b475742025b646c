"""People by program: the same verbs as the page (R-API-3, R-SEC-1, R-SEC-6)."""

import re
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from pytest_django.fixtures import Settings

from tenancy.actions import add_person, create_key
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, IdempotencyKey, Membership, Person, PersonTie
from tenancy.notifications.notices import send_notices_of
from tenancy.people.relations import are_related
from tests.conftest import House
from tests.doors.api.program import Program, pointers, program, refusal
from tests.factories.tenancy import Somebody, make_somebody
from tests.proves import proves

SECRET = "correct horse battery staple"


@pytest.fixture
def who(house: House) -> Program:
    """The administrator's program."""
    return key_of(house, house.people.admin)


def key_of(house: House, somebody: Somebody) -> Program:
    """An administrator's program, made by the command."""
    return Program(clear=create_key(house.tenant.id, Role.ADMIN, owner=somebody.person).clear)


def invited(who: Program, house: House, **given: Any) -> Any:
    """Somebody is added."""
    body = {
        "email": f"new-{house.tenant.id.hex}@people.example", "name": "Newcomer", "role": "reviewer",
        "queues": ["finance"], "reason": "Joins us", **given,
    }  # fmt: skip
    return who.post("/members", body)


def newcomer(house: House) -> Person:
    """Whom they added."""
    return Person.objects.get(email=f"new-{house.tenant.id.hex}@people.example")


def set_password(link: str) -> None:
    """Whoever has the link uses it."""
    client = Client(headers={"accept": "text/html"})
    page = client.get(link, follow=True)
    client.post(page.redirect_chain[-1][0], {"password1": SECRET, "password2": SECRET}, follow=True)


@proves("R-API-3", part="members")
@proves("R-SEC-6", part="members by program")
def test_a_person_is_invited_listed_limited_and_loses_the_role(house: House, who: Program) -> None:
    answer = invited(who, house, max_amount="100.00", max_risk="network")
    assert answer.status_code == 201
    member = answer.json()["member"]
    assert (member["invited"], member["roles"][0]["queues"]) == (True, ["finance"])
    assert member in who.get("/members").json()["results"]
    one = f"/members/{member['id']}"
    assert who.get(one).json() == member
    role = who.get(f"{one}/roles/reviewer")
    limits = {"queues": ["*"], "max_amount": None, "max_risk": "", "reason": "Knows it now"}
    changed = who.send("put", f"{one}/roles/reviewer", limits, headers={"If-Match": role["ETag"]})
    assert (changed.status_code, changed.json()["queues"], changed.json()["max_amount"]) == (200, ["*"], None)
    stale = who.send("put", f"{one}/roles/reviewer", limits, headers={"If-Match": role["ETag"]})
    assert refusal(stale) == (412, "stale")
    assert (
        who.post(f"{one}/roles", {"role": "client", "reason": "Too"}).json()["roles"][0]["role"] == "client"
    )
    assert who.post(f"{one}/roles/reviewer/remove", {"reason": "Enough"}).status_code == 204
    assert [row["role"] for row in who.get(one).json()["roles"]] == ["client"]
    assert refusal(who.get(f"{one}/roles/reviewer")) == (404, "not-found")
    with tenant_transaction(house.tenant.id):
        lines = AuditEntry.objects.filter(verb__startswith="member.").order_by("at", "id")
        found = [(line.verb, line.reason) for line in lines if line.principal is not None]
    assert found == [
        ("member.add", "Joins us"),
        ("member.change", "Knows it now"),
        ("member.add", "Too"),
        ("member.remove", "Enough"),
    ]


@proves("R-SEC-11", part="people are read by administrators' programs alone")
@pytest.mark.parametrize("role", [Role.CLIENT, Role.OPERATOR, Role.REVIEWER])
def test_a_client_an_operator_and_a_reviewer_read_no_people(house: House, role: Role) -> None:
    other = program(house.tenant.id, role)
    for path in ("/members", f"/members/{house.people.admin.person.id}"):
        assert refusal(other.get(path)) == (403, "scope-missing")


@proves("A8", part="the link by program relates whoever sees it")
def test_a_link_shown_to_a_program_relates_its_person_and_is_kept_nowhere(house: House, who: Program) -> None:
    body = {"email": f"new-{house.tenant.id.hex}@people.example", "name": "Newcomer", "role": "reviewer"}
    first, again = (who.post("/members", body, once="one").json() for _ in range(2))
    assert (first["delivery"], again["delivery"], again["link"]) == ("shown", "shown", None)
    set_password(first["link"])
    person = newcomer(house)
    assert person.check_password(SECRET)
    with tenant_transaction(house.tenant.id):
        assert first["link"] not in str(IdempotencyKey.objects.get(key="one").answer)
        kinds = PersonTie.objects.filter(person=person, by=house.people.admin.person).order_by("at")
        assert list(kinds.values_list("kind", flat=True)) == ["role_given", "link_seen"]
        assert are_related(person.id, house.people.admin.person.id)
    assert refusal(who.post(f"/members/{person.id}/link")) == (409, "link-refused")


@proves("A8", part="no link by program where mail is set up")
def test_a_link_is_mailed_where_mail_is_set_up_and_no_program_sees_it(
    house: House, who: Program, settings: Settings
) -> None:
    settings.INTERLOCK_SENDS_MAIL = True
    answer = invited(who, house)
    assert (answer.json()["delivery"], answer.json()["link"]) == ("mailed", None)
    again = who.post(f"/members/{newcomer(house).id}/link")
    assert (again.json()["delivery"], again.json()["link"]) == ("mailed", None)
    assert "/account/password" not in answer.content.decode() + again.content.decode()
    with tenant_transaction(house.tenant.id):
        assert list(PersonTie.objects.values_list("kind", flat=True)) == ["role_given"]
    assert send_notices_of(house.tenant.id) == 2
    found = re.search(r"(/account/password/reset/key/\S+)", str(mail.outbox[-1].body))
    assert found is not None
    set_password(found[1])
    assert newcomer(house).check_password(SECRET)


@proves("A8", part="confirmed by program, by somebody unrelated")
def test_an_unrelated_administrators_program_confirms_a_person_and_the_inviters_does_not(
    house: House, who: Program
) -> None:
    other = key_of(house, make_somebody(house.tenant, Role.ADMIN))
    link = invited(who, house).json()["link"]
    one = f"/members/{newcomer(house).id}"
    early = other.post(f"{one}/confirm", {"reason": "Asked."})
    assert refusal(early) == (409, "not-signed-in")
    set_password(link)
    # The person may act from now on; a program of theirs is related like themselves.
    puppet = invited(who, house, role="admin")
    assert puppet.status_code == 201
    own = create_key(house.tenant.id, Role.ADMIN, owner=newcomer(house))
    for related in (who, Program(clear=own.clear)):
        assert refusal(related.post(f"{one}/confirm", {"reason": "Me."})) == (403, "related-to-person")
    assert who.get(one).json()["to_confirm"] is False
    assert other.get(one).json()["to_confirm"] is True
    confirmed = other.post(f"{one}/confirm", {"reason": "I asked them."})
    assert confirmed.status_code == 200
    assert [tie["kind"] for tie in confirmed.json()["relations"]] == ["role_given", "role_given"]
    assert refusal(other.post(f"{one}/confirm")) == (409, "nothing-to-confirm")


@proves("R-SEC-1", part="deactivating")
def test_a_deactivated_person_and_their_keys_do_nothing_more_here(house: House, who: Program) -> None:
    somebody = make_somebody(house.tenant, Role.REVIEWER)
    own = Program(clear=create_key(house.tenant.id, Role.REVIEWER, owner=somebody.person).clear)
    assert own.get("/runs").status_code == 200
    assert who.post(f"/members/{somebody.person.id}/deactivate", {"reason": "Left"}).status_code == 204
    assert refusal(own.get("/runs")) == (403, "scope-missing")
    assert refusal(who.get(f"/members/{somebody.person.id}")) == (404, "not-found")
    with tenant_transaction(house.tenant.id):
        assert not Membership.objects.filter(person=somebody.person).exists()
        assert AuditEntry.objects.filter(verb="member.remove").latest("at").reason == "Left"
    admin = house.people.admin.person.id
    assert refusal(who.post(f"/members/{admin}/deactivate")) == (409, "last-admin")
    assert refusal(who.post(f"/members/{admin}/roles/admin/remove")) == (409, "last-admin")


@proves("R-SEC-7", part="members by program")
@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"email": "nobody"}, "/email"),
        ({"email": "key-1@keys.invalid"}, "/email"),
        ({"name": ""}, "/name"),
        ({"role": "king"}, "/role"),
        ({"queues": ["finance", "*"]}, "/queues"),
        ({"queues": ["q" * 65]}, "/queues/0"),
        ({"max_amount": "-1"}, "/max_amount"),
        ({"max_amount": "1.001"}, "/max_amount"),
        ({"max_amount": 1.5}, "/max_amount"),
        ({"max_risk": "x"}, "/max_risk"),
        ({"password": SECRET}, "/password"),
    ],
)
def test_a_wrong_invitation_by_program_names_its_field_and_adds_nobody(
    house: House, who: Program, given: dict[str, Any], pointer: str
) -> None:
    answer = invited(who, house, **given)
    assert (answer.status_code, pointers(answer)) == (400, [pointer])
    assert not Person.objects.filter(name="Newcomer", email__contains=house.tenant.id.hex).exists()


def test_a_person_known_elsewhere_keeps_name_and_password_and_gets_no_link(
    house: House, who: Program
) -> None:
    known = add_person(f"known-{house.tenant.id.hex}@people.example", "Known", SECRET)
    answer = invited(who, house, email=known.email).json()
    assert (answer["delivery"], answer["link"], answer["member"]["name"]) == ("none", None, "Known")
    assert pointers(invited(who, house, email=known.email)) == ["/role"]

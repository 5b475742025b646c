"""The closed list of doors that decide, and a walk over those about people with every pair of relations
(R-APPR-23, A8)."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest import mock

import psycopg
import pytest

from tenancy.actions import add_member, create_key
from tenancy.core.relations import TieKind
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership
from tests.doors import deciding
from tests.doors.api.doors import addresses
from tests.doors.api.program import Program
from tests.doors.pages.browsers import words
from tests.doors.pages.people import at
from tests.doors.pages.test_every_write import TAKEN
from tests.doors.relation_pairs import PAIRS, Pair, tie
from tests.doors.test_deciding_doors import PROPOSALS, REQUESTS, RUNS, WHY, as_admin
from tests.doors.test_deciding_doors import desk as desk
from tests.doors.test_relations import DOORS, OF_PEOPLE
from tests.factories.approvals import Desk
from tests.factories.tenancy import Somebody, make_somebody
from tests.proves import proves

# -- the list is closed


@proves("R-APPR-23", part="the list of deciding doors is closed")
def test_address_that_writes_is_known_to_decide_or_not() -> None:
    api = {f"{method} {route}" for method, route in addresses() if method != "get"}
    pages = {f"page {route}" for route in TAKEN}
    told = [route for routes in deciding.NOT_DECIDING.values() for route in routes] + [*deciding.DECIDING]
    assert sorted(told) == sorted({*told})
    assert {*told} == api | pages


def test_deciding_door_has_its_walks() -> None:
    walked = {name for names in deciding.DECIDING.values() for name in names}
    assert walked == {
        *DOORS, *REQUESTS, *RUNS, *PROPOSALS, *PEOPLE, "undo", "question", "another's key",
        "another's key page",
    }  # fmt: skip


# -- people: whose word reaches further, whose account is confirmed, whose key gets a new secret


def narrow_admin(desk: Desk, who: Somebody) -> Membership:
    """Somebody as an administrator whose word reaches up to 50, by the operator's own."""
    return add_member(desk.id, who.person, Role.ADMIN, max_amount=Decimal(50))


def by_limits(desk: Desk, pair: Pair) -> Any:
    narrow_admin(desk, pair.submitter)
    body = {"queues": ["*"], "max_amount": "5000", **WHY}
    path = f"/members/{pair.submitter.person.id}/roles/admin"
    return as_admin(desk, pair).send("put", path, body)


def by_limits_page(desk: Desk, pair: Pair) -> Any:
    member = narrow_admin(desk, pair.submitter)
    as_admin(desk, pair)
    return at(pair.decider).post(f"/tenant/members/{member.id}/limits", {"queues": "*", **WHY})


def by_further_role(desk: Desk, pair: Pair) -> Any:
    narrow_admin(desk, pair.submitter)
    body = {"role": "reviewer", "queues": ["*"], **WHY}
    return as_admin(desk, pair).post(f"/members/{pair.submitter.person.id}/roles", body)


def by_invitation(desk: Desk, pair: Pair) -> Any:
    narrow_admin(desk, pair.submitter)
    whom = {"email": pair.submitter.person.email, "name": "Me"}
    return as_admin(desk, pair).post("/members", {**whom, "role": "reviewer", "queues": ["*"], **WHY})


def by_invitation_page(desk: Desk, pair: Pair) -> Any:
    narrow_admin(desk, pair.submitter)
    as_admin(desk, pair)
    form = {"email": pair.submitter.person.email, "name": "Me", "role": "reviewer", "queues": "*"}
    return at(pair.decider).post("/tenant/people/invite", form)


def by_confirmation(desk: Desk, pair: Pair) -> Any:
    tie(desk, TieKind.LINK_SEEN, desk.house.people.operator, pair.submitter)
    return as_admin(desk, pair).post(f"/members/{pair.submitter.person.id}/confirm", WHY)


def by_confirmation_page(desk: Desk, pair: Pair) -> Any:
    tie(desk, TieKind.LINK_SEEN, desk.house.people.operator, pair.submitter)
    as_admin(desk, pair)
    return at(pair.decider).post(f"/tenant/people/{pair.submitter.person.id}/confirm", WHY)


WIDENING: dict[str, Callable[[Desk, Pair], Any]] = {
    "own limits": by_limits, "own limits page": by_limits_page, "own further role": by_further_role,
    "own role": by_invitation, "own role page": by_invitation_page,
}  # fmt: skip
PEOPLE: dict[str, Callable[[Desk, Pair], Any]] = {
    **WIDENING, "confirmation": by_confirmation, "confirmation page": by_confirmation_page,
}  # fmt: skip


@proves("R-APPR-23", part="every door about a person, every pair of relations")
@proves("A8", part="every door about a person")
@pytest.mark.parametrize("door", PEOPLE)
@pytest.mark.parametrize("relation", OF_PEOPLE)
def test_word_of_a_related_administrator_reaches_no_further_at_any_door(
    desk: Desk, superuser: psycopg.Connection, relation: str, door: str
) -> None:
    make, rule = PAIRS[relation]
    answer = PEOPLE[door](desk, make(desk, superuser))
    # An account whose link was seen and that has no password yet is confirmed by nobody.
    good = (409,) if door.startswith("confirmation") else (200, 201, 302)
    assert answer.status_code in ((403,) if rule else good), (door, relation, answer.content)


@proves("R-APPR-23", part="an administrator's own limits")
@pytest.mark.parametrize("door", WIDENING)
def test_administrator_widens_no_limits_of_their_own_where_another_could(desk: Desk, door: str) -> None:
    who = make_somebody(desk.house.tenant, Role.AUDITOR)
    pair = Pair(who, who, create_key(desk.id, Role.AUDITOR, owner=who.person))
    with mock.patch(f"{__name__}.as_admin", own_admin):
        assert WIDENING[door](desk, pair).status_code == 403
    with tenant_transaction(desk.id):
        assert {one.max_amount for one in Membership.objects.filter(person=who.person, role="admin")} == {50}
        assert not Membership.objects.filter(person=who.person, role="reviewer").exists()


def own_admin(desk: Desk, pair: Pair) -> Program:
    """A key of somebody who administers already."""
    return Program(clear=create_key(desk.id, Role.ADMIN, owner=pair.decider.person).clear)


def test_administrator_narrows_their_own_limits_alone(desk: Desk) -> None:
    admin = desk.house.people.admin
    make_somebody(desk.house.tenant, Role.ADMIN)
    key = Program(clear=create_key(desk.id, Role.ADMIN, owner=admin.person).clear)
    body = {"queues": ["*"], "max_amount": "50", **WHY}
    assert key.send("put", f"/members/{admin.person.id}/roles/admin", body).status_code == 200


def test_only_administrator_widens_their_own_limits_and_that_is_audited(desk: Desk) -> None:
    admin = desk.house.people.admin
    key = Program(clear=create_key(desk.id, Role.ADMIN, owner=admin.person).clear)
    path = f"/members/{admin.person.id}/roles/admin"
    for body in ({"queues": ["*"], "max_amount": "50", **WHY}, {"queues": ["*"], **WHY}):
        assert key.send("put", path, body).status_code == 200
    with tenant_transaction(desk.id):
        entry = AuditEntry.objects.get(verb="decision.alone")
    assert (entry.object, entry.reason) == (f"person:{admin.person.id}", WHY["reason"])


@proves("R-SEC-11", part="a deciding key is rotated by its owner")
def test_key_that_decides_is_rotated_by_its_owner_alone_and_the_page_offers_it_to_nobody_else(
    desk: Desk,
) -> None:
    admin, owner = desk.house.people.admin, desk.house.people.approver
    key = create_key(desk.id, Role.REVIEWER, owner=owner.person, label="theirs").key
    plain_key = create_key(desk.id, Role.CLIENT, label="a program's").key
    shown = at(admin).get("/tenant/keys")
    page = shown.content.decode()
    assert f"/tenant/keys/{key.id}/rotate" not in page
    assert f"{owner.person.name} rotates it" in words(shown)
    assert f"/tenant/keys/{plain_key.id}/rotate" in page
    assert at(admin).post(f"/tenant/keys/{key.id}/rotate").status_code == 403
    program = Program(clear=create_key(desk.id, Role.ADMIN, owner=admin.person).clear)
    assert program.post(f"/keys/{key.id}/rotate", {"overlap_hours": 0}).status_code == 403

"""A quorum counts those who may decide at the moment it is reached (R-APPR-5)."""

from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

from approvals.queries.people import decider_of
from approvals.queries.request_detail import card_of
from tenancy.actions import add_member, create_key, remove_member, revoke_key
from tenancy.actions.people import Limits, change_limits
from tenancy.core.roles import EVERY_QUEUE, Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Person
from tenancy.queries import standing_of
from tests.conftest import House
from tests.doors.api.program import Program
from tests.doors.pages.browsers import words
from tests.doors.pages.people import at
from tests.factories.approvals import Desk, open_desk
from tests.factories.tenancy import Somebody, make_somebody
from tests.proves import proves


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        yield opened


def lose_role(desk: Desk, who: Somebody) -> None:
    remove_member(desk.id, who.person, Role.REVIEWER)


def switch_off(desk: Desk, who: Somebody) -> None:
    Person.objects.filter(id=who.person.id).update(is_active=False)


def lower(desk: Desk, who: Somebody) -> None:
    with tenant_transaction(desk.id):
        member = Membership.objects.get(person=who.person)
    change_limits(desk.id, member.id, Limits(EVERY_QUEUE, Decimal(10)), by=None, reason="Less.")


def become_related_to_the_submitter(desk: Desk, who: Somebody) -> None:
    add_member(desk.id, who.person, Role.CLIENT, by=desk.house.people.submitter.id)


LAPSES: dict[str, Callable[[Desk, Somebody], None]] = {
    "role": lose_role, "active": switch_off, "limits": lower, "related": become_related_to_the_submitter,
}  # fmt: skip


@proves("R-APPR-5", part="a quorum counts those who may still decide")
@pytest.mark.parametrize("lapse", LAPSES)
def test_finding_5_yes_of_somebody_who_may_decide_no_more_counts_in_no_quorum(desk: Desk, lapse: str) -> None:
    people, first = desk.house.people, make_somebody(desk.house.tenant, Role.REVIEWER)
    request = desk.ask(quorum=2)
    desk.say(request, first)
    LAPSES[lapse](desk, first)
    page = words(at(people.approver).get(f"/approvals/{request.id}"))
    assert "0 of 2 agreed" in page
    assert "which no longer counts" in page
    assert desk.say(request, people.approver).status == "pending"
    assert desk.say(request, people.second_approver).outcome == "approve"


def test_finding_5_yes_of_a_revoked_key_counts_in_no_quorum(desk: Desk) -> None:
    people = desk.house.people
    key = create_key(desk.id, Role.REVIEWER, owner=people.approver.person)
    request = desk.ask(quorum=2)
    desk.say(request, key.key.principal_id)
    revoke_key(desk.id, key.key.id)
    assert desk.say(request, people.second_approver).status == "pending"


def test_finding_5_of_two_who_agreed_and_became_related_since_one_counts(desk: Desk) -> None:
    people, third = desk.house.people, make_somebody(desk.house.tenant, Role.REVIEWER)
    request = desk.ask(quorum=3)
    desk.say(request, people.approver)
    desk.say(request, people.second_approver)
    add_member(desk.id, people.second_approver.person, Role.CLIENT, by=people.approver.id)
    assert desk.say(request, third).status == "pending"


def test_finding_5_yes_to_an_edit_of_somebody_without_the_role_counts_not_and_the_api_says_so(
    desk: Desk,
) -> None:
    people, first = desk.house.people, make_somebody(desk.house.tenant, Role.REVIEWER)
    request, edited = desk.ask(quorum=2), {"order_id": "A-1", "amount": "300.00"}
    desk.say(request, first, "edit", arguments=edited)
    program = Program(clear=create_key(desk.id, Role.REVIEWER, owner=people.approver.person).clear)
    (shown,) = program.get(f"/approvals/{request.id}").json()["edits"]
    assert (shown["agreed"], shown["missing"]) == (1, 1)
    lose_role(desk, first)
    (shown,) = program.get(f"/approvals/{request.id}").json()["edits"]
    assert (shown["agreed"], shown["missing"]) == (0, 2)
    assert desk.say(request, people.approver, "edit", arguments=edited).status == "pending"
    assert desk.say(request, people.second_approver, "edit", arguments=edited).outcome == "edit"


def test_yes_counts_again_with_the_role_and_stays_where_it_was_reached(desk: Desk) -> None:
    people, first = desk.house.people, make_somebody(desk.house.tenant, Role.REVIEWER)
    request = desk.ask(quorum=2)
    desk.say(request, first)
    lose_role(desk, first)
    add_member(desk.id, first.person, Role.REVIEWER)
    assert desk.say(request, people.approver).outcome == "approve"
    lose_role(desk, first)
    with tenant_transaction(desk.id):
        who = standing_of(desk.id, people.approver.id)
        assert who is not None
        assert card_of(desk.again(request), decider_of(who)).row.agreeing_count == 2

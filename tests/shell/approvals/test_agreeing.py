"""More than one person, and other arguments than were asked for."""

from typing import Any

import pytest

from approvals.actions import ConsumedGrant
from approvals.core.errors import AlreadyDecided, DecisionInvalid
from tenancy.actions import create_key
from tenancy.core.roles import Role
from tests.factories.approvals import ASKED, Desk, action_of
from tests.proves import proves

LARGE = {**ASKED, "amount": "300.00"}
SMALL = {**ASKED, "amount": "80.00"}


@proves("R-APPR-5", part="k of n")
def test_two_people_are_two_people(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask(arguments=LARGE, quorum=2)
    assert desk.say(request, people.approver).status == "pending"
    assert not isinstance(desk.use(request, action=request.action_digest), ConsumedGrant)
    assert desk.heard == []
    assert desk.say(request, people.second_approver).status == "decided"
    assert [said.signal_kind for said in desk.heard] == ["decided"]


@proves("R-APPR-5", part="a person with two keys is one")
def test_a_person_and_their_key_are_one(desk: Desk) -> None:
    approver, request = desk.house.people.approver, desk.ask(arguments=LARGE, quorum=2)
    key = create_key(desk.id, Role.REVIEWER, owner=approver.person)
    desk.say(request, key.key.principal_id)
    with pytest.raises(AlreadyDecided, match="by you"):
        desk.say(request, approver)
    assert desk.again(request).status == "pending"


def test_one_no_is_enough(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask(arguments=LARGE, quorum=2)
    desk.say(request, people.approver)
    assert desk.say(request, people.second_approver, "reject").outcome == "reject"
    assert not isinstance(desk.use(request, action=request.action_digest), ConsumedGrant)


@proves("R-APPR-3", part="edit")
def test_an_edit_grants_the_edited_action_and_no_other(desk: Desk) -> None:
    request = desk.ask()
    decided = desk.say(request, desk.house.people.approver, "edit", arguments=SMALL)
    assert (decided.outcome, decided.granted_action) == ("edit", action_of(SMALL))
    assert desk.heard[0].signal_payload["arguments"] == '{"amount":"80.00","order_id":"A-1"}'
    assert not isinstance(desk.use(request), ConsumedGrant)
    assert isinstance(desk.use(request, action=action_of(SMALL)), ConsumedGrant)


@proves("R-APPR-5", part="an edit counts its approvers anew")
def test_an_edit_that_moves_more_needs_a_second_person_for_the_same_edit(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    assert desk.say(request, people.approver, "edit", arguments=LARGE).status == "pending"
    other = {**LARGE, "amount": "301.00"}
    assert desk.say(request, people.second_approver, "edit", arguments=other).status == "pending"
    decided = desk.say(request, people.admin, "edit", arguments=LARGE)
    assert (decided.status, decided.granted_action) == ("decided", action_of(LARGE))


def test_an_approval_of_what_was_asked_is_none_of_the_edit(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    desk.say(request, people.approver, "edit", arguments=LARGE)
    decided = desk.say(request, people.second_approver)
    assert (decided.outcome, decided.granted_action) == ("approve", request.action_digest)


def test_an_edit_that_moves_less_needs_fewer(desk: Desk) -> None:
    request = desk.ask(arguments=LARGE, quorum=2)
    decided = desk.say(request, desk.house.people.approver, "edit", arguments=SMALL)
    assert (decided.status, decided.granted_action) == ("decided", action_of(SMALL))


@proves("R-APPR-3", part="an edit is judged")
@pytest.mark.parametrize("arguments", [None, [], "{}", {}, {**ASKED, "more": 1}, dict(ASKED)])
def test_an_edit_that_is_refused_changes_nothing(desk: Desk, arguments: Any) -> None:
    request = desk.ask()
    with pytest.raises(DecisionInvalid) as refused:
        desk.say(request, desk.house.people.approver, "edit", arguments=arguments)
    assert refused.value.data["pointer"] == "/arguments"
    assert (desk.again(request).status, desk.said(request)) == ("pending", [])

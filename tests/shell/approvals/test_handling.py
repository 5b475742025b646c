"""Claiming, giving, putting aside, remarking: kept on record, and none of it decides."""

from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest

from approvals.actions.assignment import AssignmentChange, update_assignment
from approvals.core.assignment import AssignmentAction
from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours, RequestNotFound
from approvals.models import Handling, Request
from approvals.queries.assignment import comments_of, handled_of, holders_of, who_may
from approvals.queries.live_requests import changed_requests
from tenancy.db.change_cursor import mark_now
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.approvals import Desk
from tests.factories.tenancy import Somebody
from tests.proves import proves


def do(desk: Desk, request: Request, who: Somebody, kind: str, **more: Any) -> Request:
    """One thing done by somebody."""
    return update_assignment(
        desk.id, request.id, who.principal.id, AssignmentChange(kind=AssignmentAction(kind), **more)
    )


def held(desk: Desk, request: Request) -> UUID | None:
    """Whose it is."""
    with tenant_transaction(desk.id):
        found = holders_of(handled_of([request.id])).get(request.id)
    return found[0] if found is not None else None


@proves("R-APPR-9", part="assignment")
def test_a_request_is_claimed_once_given_on_and_released(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    do(desk, request, people.approver, "claim")
    with pytest.raises(AlreadyDecided, match="already claimed by the reviewer"):
        do(desk, request, people.second_approver, "claim")
    do(desk, request, people.second_approver, "assign", to=people.second_approver.principal.id)
    assert held(desk, request) == people.second_approver.principal.id
    do(desk, request, people.second_approver, "release")
    assert held(desk, request) is None
    with pytest.raises(DecisionInvalid):
        do(desk, request, people.approver, "release")


@proves("R-APPR-9", part="assignment decides nothing")
def test_whose_it_is_keeps_nobody_from_deciding(desk: Desk) -> None:
    request = desk.ask()
    do(desk, request, desk.house.people.approver, "claim")
    assert desk.say(request, desk.house.people.second_approver).outcome == "approve"
    with pytest.raises(AlreadyDecided, match="already decided"):
        do(desk, request, desk.house.people.approver, "release")
    do(desk, request, desk.house.people.approver, "comment", text="Seen too late.")


@pytest.mark.parametrize("kind", ["claim", "assign", "release", "snooze", "comment"])
def test_who_may_not_decide_it_handles_nothing(desk: Desk, kind: str) -> None:
    request = desk.ask(submitter=desk.house.people.admin if kind == "claim" else None)
    for who in (desk.house.people.auditor, desk.house.people.submitter, desk.house.people.admin):
        if who == desk.house.people.admin and kind != "claim":
            continue
        with pytest.raises(NotYours):
            do(desk, request, who, kind, text="a", to=desk.house.people.approver.principal.id)


@proves("R-APPR-9", part="given only to who may decide")
def test_it_is_given_to_nobody_who_may_not_decide_it(desk: Desk) -> None:
    people = desk.house.people
    request = desk.ask(submitter=people.admin)
    for to in (people.auditor.principal.id, people.admin.principal.id, people.stranger.principal.id, None):
        with pytest.raises(DecisionInvalid):
            do(desk, request, people.approver, "assign", to=to)
    with tenant_transaction(desk.id):
        named = {one for one, _ in who_may(request)}
    assert named == {people.approver.principal.id, people.second_approver.principal.id}
    do(desk, request, people.admin, "assign", to=people.approver.principal.id)
    assert held(desk, request) == people.approver.principal.id


def test_nothing_is_put_aside_past_its_time_and_no_remark_is_empty(desk: Desk) -> None:
    who, request = desk.house.people.approver, desk.ask(expires_in=timedelta(hours=1))
    with tenant_transaction(desk.id):
        now = database_now()
    for until in (None, now - timedelta(seconds=1), now + timedelta(hours=2)):
        with pytest.raises(DecisionInvalid):
            do(desk, request, who, "snooze", until=until)
    for text in ("", "  ", "a" * 4_001, "a\0b", "\ud800"):
        with pytest.raises(DecisionInvalid):
            do(desk, request, who, "comment", text=text)
    with tenant_transaction(desk.id):
        assert Handling.objects.count() == 0


@proves("R-APPR-9", part="comments")
def test_remarks_stand_in_order_with_their_names(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    do(desk, request, people.approver, "comment", text="Is this the right order?")
    do(desk, request, people.admin, "comment", text="It is.")
    with tenant_transaction(desk.id):
        found = [(one.name, one.text) for one in comments_of(request.id)]
    assert found == [("the reviewer", "Is this the right order?"), ("the admin", "It is.")]


@proves("R-APPR-9", part="whoever follows the list sees whose it is")
def test_a_follower_hears_of_a_claim(desk: Desk) -> None:
    request, other = desk.ask(), desk.ask()
    desk.say(other, desk.house.people.approver, "reject", reason="no")
    with tenant_transaction(desk.id):
        mark = str(mark_now())
    do(desk, request, desk.house.people.approver, "claim")
    with tenant_transaction(desk.id):
        assert request.id in [one.id for one in changed_requests(mark).requests]


def test_another_tenant_s_request_is_none(desk: Desk) -> None:
    request = desk.ask()
    stranger = desk.house.people.stranger
    with pytest.raises(RequestNotFound):
        do(desk, request, stranger, "claim")
    with pytest.raises(RequestNotFound):
        update_assignment(
            desk.id,
            fresh_id(),
            desk.house.people.approver.principal.id,
            AssignmentChange(kind=AssignmentAction.CLAIM),
        )


@proves("R-APPR-9", part="what was done stays")
@pytest.mark.parametrize(
    "sql", ["UPDATE approvals_handling SET text = 'never'", "DELETE FROM approvals_handling"]
)
def test_what_was_done_cannot_be_undone_in_the_table(
    desk: Desk, superuser: psycopg.Connection[Any], sql: LiteralString
) -> None:
    do(desk, desk.ask(), desk.house.people.approver, "claim")
    with pytest.raises(psycopg.errors.IntegrityError, match="append-only"), superuser.transaction():
        superuser.execute(sql)

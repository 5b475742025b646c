"""One person's word on one request: every answer it can get."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection

from approvals.actions import ConsumedGrant, expire_due_of_run, withdraw_open
from approvals.core.errors import (
    AlreadyDecided,
    DecisionInvalid,
    Expired,
    NotYours,
    PacketChanged,
    RequestNotFound,
)
from approvals.signals import request_settled
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.approvals import Desk
from tests.proves import proves

FORM = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
LATE = timedelta(seconds=-1)


@proves("R-APPR-3", part="approve")
def test_an_approval_grants_the_action_that_was_asked_for(desk: Desk) -> None:
    request = desk.ask()
    decided = desk.say(request, desk.house.people.approver, reason="It is right.")
    assert (decided.status, decided.outcome, decided.ended_because) == ("decided", "approve", "agreed")
    assert decided.granted_action == request.action_digest
    assert desk.heard[0].signal_payload["reason"] == "It is right."


@proves("R-APPR-3", part="reject")
def test_a_rejection_grants_nothing_and_says_why(desk: Desk) -> None:
    decided = desk.say(desk.ask(), desk.house.people.approver, "reject", reason="Not theirs.")
    assert (decided.outcome, decided.ended_because, decided.granted_action) == ("reject", "refused", "")
    assert desk.heard[0].signal_payload["reason"] == "Not theirs."


@proves("R-APPR-1", part="reconciliation")
@pytest.mark.parametrize("kind", ["happened", "not_happened", "cancel"])
def test_a_doubt_is_resolved_by_a_person(desk: Desk, kind: str) -> None:
    decided = desk.say(desk.ask(kind="reconciliation"), desk.house.people.approver, kind)
    assert (decided.outcome, decided.granted_action) == (kind, "")


@proves("R-APPR-1", part="clarification")
@proves("R-APPR-5", part="the submitter answers")
def test_a_question_is_answered_by_who_submitted_and_nobody_else(desk: Desk) -> None:
    request = desk.ask(kind="clarification", queue="submitter", answer_schema=FORM)
    with pytest.raises(NotYours):
        desk.say(request, desk.house.people.admin, "answer", answer={"city": "Oslo"})
    desk.say(request, desk.house.people.submitter, "answer", answer={"city": "Oslo"})
    assert desk.heard[0].signal_payload["answer"] == '{"city":"Oslo"}'


@proves("R-APPR-3", part="typed answer")
@pytest.mark.parametrize(
    ("answer", "pointer"),
    [
        (None, "/answer"),
        ({}, "/answer"),
        ({"city": 3}, "/answer/city"),
        ({"city": "x" * 21}, "/answer/city"),
        ({"city": "Oslo", "more": 1}, "/answer"),
        ({"city": "\ud800"}, "/answer"),
        ({"city": 2**64}, "/answer"),
        ({"city": "x" * 70_000}, "/answer"),
    ],
)
def test_an_answer_that_does_not_fit_the_form_names_its_field(desk: Desk, answer: Any, pointer: str) -> None:
    request = desk.ask(kind="clarification", queue="submitter", answer_schema=FORM)
    with pytest.raises(DecisionInvalid) as refused:
        desk.say(request, desk.house.people.submitter, "answer", answer=answer)
    assert refused.value.data["pointer"] == pointer
    assert desk.again(request).status == "pending"


@pytest.mark.parametrize(
    ("asked", "said"),
    [("action", "happened"), ("action", "answer"), ("reconciliation", "approve"), ("reconciliation", "edit")],
)
def test_a_word_for_another_kind_of_request_is_refused(desk: Desk, asked: Any, said: str) -> None:
    request = desk.ask(kind=asked)
    with pytest.raises(DecisionInvalid):
        desk.say(request, desk.house.people.approver, said)
    assert desk.said(request) == []


@proves("R-SEC-7", part="reasons")
@pytest.mark.parametrize("reason", ["x" * 4_001, "a\0b", "\ud800"])
def test_a_reason_that_cannot_be_kept_as_it_is_is_refused(desk: Desk, reason: str) -> None:
    with pytest.raises(DecisionInvalid):
        desk.say(desk.ask(), desk.house.people.approver, reason=reason)


@proves("R-APPR-14", part="twice")
def test_the_same_decision_twice_counts_once(desk: Desk) -> None:
    request = desk.ask()
    desk.say(request, desk.house.people.approver)
    with pytest.raises(AlreadyDecided):
        desk.say(request, desk.house.people.approver)
    assert (len(desk.said(request)), len(desk.heard)) == (1, 1)


@proves("R-APPR-5", part="the other is told")
def test_who_comes_second_is_told(desk: Desk) -> None:
    request = desk.ask()
    desk.say(request, desk.house.people.approver)
    with pytest.raises(AlreadyDecided) as told:
        desk.say(request, desk.house.people.second_approver, "reject")
    assert told.value.data == {"status": "decided"}
    assert desk.again(request).outcome == "approve"


@proves("A4")
@proves("R-APPR-7", part="expiry")
def test_a_word_that_comes_too_late_settles_the_request_as_expired(desk: Desk) -> None:
    request = desk.ask(expires_in=LATE)
    for _ in range(2):
        with pytest.raises(Expired):
            desk.say(request, desk.house.people.approver)
    again = desk.again(request)
    assert (again.status, again.outcome, again.granted_action) == ("expired", "", "")
    assert [said.signal_kind for said in desk.heard] == ["expired"]
    assert desk.said(request) == []


@proves("A5", part="nobody answers")
def test_nobody_s_silence_is_no_yes(desk: Desk) -> None:
    request = desk.ask(expires_in=LATE)
    with tenant_transaction(desk.id):
        assert expire_due_of_run(desk.id, request.run_id, database_now()) == 1
        assert expire_due_of_run(desk.id, request.run_id, database_now()) == 0
    assert desk.again(request).status == "expired"
    assert not isinstance(desk.use(request), ConsumedGrant)


def test_a_request_that_has_time_left_does_not_expire(desk: Desk) -> None:
    request = desk.ask()
    with tenant_transaction(desk.id):
        assert expire_due_of_run(desk.id, request.run_id, database_now()) == 0


@proves("R-APPR-7", part="the database's clock")
def test_only_the_database_says_what_is_late(desk: Desk) -> None:
    request, late = desk.ask(), desk.ask(expires_in=LATE)
    with time_machine.travel(datetime(2040, 1, 1, tzinfo=UTC), tick=False):
        desk.say(request, desk.house.people.approver)
    with time_machine.travel(datetime(2020, 1, 1, tzinfo=UTC), tick=False), pytest.raises(Expired):
        desk.say(late, desk.house.people.approver)


@proves("R-APPR-2", part="withdrawn")
def test_a_run_that_ends_takes_its_requests_along(desk: Desk) -> None:
    run = fresh_id()
    requests = [desk.ask(run=run, call="c1"), desk.ask(run=run, call="c2")]
    elsewhere = desk.ask()
    with tenant_transaction(desk.id):
        assert withdraw_open(desk.id, run, "run cancelled", database_now()) == 2
    for request in requests:
        with pytest.raises(AlreadyDecided, match="withdrawn"):
            desk.say(request, desk.house.people.approver)
        assert desk.again(request).ended_because == "run cancelled"
    assert (desk.again(elsewhere).status, desk.heard) == ("pending", [])


@proves("R-APPR-14", part="another order")
def test_two_open_requests_are_decided_in_any_order_each_for_itself(desk: Desk) -> None:
    run = fresh_id()
    first, second = desk.ask(run=run, call="c1"), desk.ask(run=run, call="c2")
    desk.say(second, desk.house.people.approver, "reject")
    assert desk.again(first).status == "pending"
    desk.say(first, desk.house.people.approver)
    assert (desk.again(first).outcome, desk.again(second).outcome) == ("approve", "reject")


@proves("A1", part="another packet")
@proves("R-APPR-4", part="the packet shown")
def test_a_word_on_another_packet_is_refused(desk: Desk) -> None:
    request = desk.ask()
    with pytest.raises(PacketChanged) as changed:
        desk.say(request, desk.house.people.approver, packet_digest="0" * 64)
    assert changed.value.data == {"packet_digest": request.packet_digest}
    assert (
        desk.say(request, desk.house.people.approver, packet_digest=request.packet_digest).outcome
        == "approve"
    )


@proves("Z1", part="requests")
def test_another_tenant_s_request_is_like_a_missing_one(desk: Desk) -> None:
    request, stranger = desk.ask(), desk.house.people.stranger
    with pytest.raises(RequestNotFound):
        desk.say(request, stranger)
    elsewhere = Desk(desk.house)
    with pytest.raises(RequestNotFound) as missing:
        elsewhere.say(type(request)(id=fresh_id()), desk.house.people.approver)
    assert missing.value.data == {}


@proves("R-APPR-15", part="who and when")
def test_the_decision_names_who_said_it_as_what_and_on_what(desk: Desk) -> None:
    request, who = desk.ask(), desk.house.people.admin
    decided = desk.say(request, who)
    (decision,) = desk.said(request)
    assert (decision.principal, decision.owner, decision.role) == (who.principal.id, who.person.id, "admin")
    assert (decision.packet_digest, decision.at) == (request.packet_digest, decided.settled_at)


@proves("RING", part="decision and signal are one")
def test_a_decision_nobody_can_be_told_of_is_not_made(desk: Desk) -> None:
    def deaf(**_: Any) -> None:
        assert connection.in_atomic_block
        raise RuntimeError

    request = desk.ask()
    request_settled.connect(deaf, weak=False)
    with pytest.raises(RuntimeError):
        desk.say(request, desk.house.people.approver)
    assert (desk.again(request).status, desk.said(request)) == ("pending", [])

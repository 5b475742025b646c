"""Threads that meet at one request: one of them wins, and the others are told."""

from datetime import timedelta
from functools import partial
from threading import Event
from time import sleep

import pytest

from approvals.actions import ConsumedGrant, expire_due_of_run, withdraw_open
from approvals.core.errors import AlreadyDecided, Expired
from approvals.models import Request
from tenancy.actions import create_key
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.approvals import Desk, at_once
from tests.proves import proves


@proves("A3")
@proves("R-APPR-5", part="two reviewers at once")
@pytest.mark.parametrize("second", ["approve", "reject"])
def test_one_of_two_reviewers_wins(desk: Desk, second: str) -> None:
    people, request = desk.house.people, desk.ask()
    outcomes = at_once(
        [
            partial(desk.say, request, people.approver),
            partial(desk.say, request, people.second_approver, second),
        ]
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AlreadyDecided", "Request"]
    assert (len(desk.said(request)), len(desk.heard)) == (1, 1)
    assert desk.again(request).outcome == desk.said(request)[0].kind


@proves("A3", part="the same word sent again and again")
def test_one_person_clicking_eight_times_says_it_once(desk: Desk) -> None:
    request = desk.ask(quorum=2)
    outcomes = at_once([partial(desk.say, request, desk.house.people.approver)] * 8)
    assert sum(isinstance(outcome, AlreadyDecided) for outcome in outcomes) == 7
    assert len(desk.said(request)) == 1


@proves("R-APPR-5", part="k of n at once")
def test_two_of_two_at_once_settle_once_and_in_one_line(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask(quorum=2)
    key = create_key(desk.id, Role.REVIEWER, owner=people.approver.person)
    at_once(
        [
            partial(desk.say, request, who)
            for who in (people.approver, people.second_approver, key.key.principal_id)
        ]
    )
    first, second = desk.said(request)
    assert (first.previous, second.previous) == (request.packet_digest, first.digest)
    assert first.owner != second.owner
    assert (desk.again(request).status, len(desk.heard)) == ("decided", 1)


@proves("R-APPR-2", part="decision against the run's end")
def test_a_decision_and_the_run_s_end_cannot_both_happen(desk: Desk) -> None:
    request = desk.ask()

    def end() -> int:
        with tenant_transaction(desk.id):
            return withdraw_open(desk.id, request.run_id, "run cancelled", database_now())

    said, withdrawn = at_once([partial(desk.say, request, desk.house.people.approver), end])
    assert (withdrawn == 1) == isinstance(said, AlreadyDecided)
    assert desk.again(request).status == ("withdrawn" if withdrawn else "decided")
    assert len(desk.said(request)) == (0 if withdrawn else 1)


@proves("A4", part="at once")
def test_a_late_word_and_the_sweep_expire_it_once(desk: Desk) -> None:
    request = desk.ask(expires_in=timedelta(0))

    def sweep() -> int:
        with tenant_transaction(desk.id):
            return expire_due_of_run(desk.id, request.run_id, database_now())

    outcomes = at_once([partial(desk.say, request, desk.house.people.approver), sweep, sweep])
    assert isinstance(outcomes[0], Expired)
    assert (desk.again(request).status, len(desk.heard)) == ("expired", 1)


@proves("A2")
@proves("R-APPR-4", part="single use at once")
def test_a_grant_is_used_by_one_of_many(desk: Desk) -> None:
    request = desk.ask()
    desk.say(request, desk.house.people.approver)
    outcomes = at_once([partial(desk.use, request, effect=f"{number:032d}") for number in range(6)])
    assert sum(isinstance(outcome, ConsumedGrant) for outcome in outcomes) == 1


@proves("R-APPR-7", part="late after waiting")
def test_a_word_that_waited_past_the_request_s_time_is_late(desk: Desk) -> None:
    request, held = desk.ask(expires_in=timedelta(seconds=1)), Event()

    def hold() -> None:
        with tenant_transaction(desk.id):
            Request.objects.select_for_update().get(id=request.id)
            held.set()
            while database_now() < request.expires_at:
                sleep(0.05)

    def say() -> Request:
        assert held.wait(5)
        return desk.say(request, desk.house.people.approver)

    assert isinstance(at_once([hold, say])[1], Expired)

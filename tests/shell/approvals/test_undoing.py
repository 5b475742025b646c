"""A yes that can be taken back: kept, taken back, taking effect, or coming to nothing."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError

from approvals.actions import ConsumedGrant, decide_request, withdraw_open
from approvals.actions.undo import take_effect, undo_deferred_approval
from approvals.core.errors import AlreadyDecided, NothingToUndo, NotYours, RequestNotFound, YesStands
from approvals.models import Request
from orchestrator.tenants.queries.cross_tenant import deferred_runs
from tenancy.actions import create_key, remove_member
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.factories.approvals import ASKED, Desk, action_of, at_once
from tests.factories.tenancy import Somebody
from tests.factories.undoing import kept_of, pass_time
from tests.proves import proves
from tests.shell.approvals.conftest import Later

LOW: dict[str, Any] = {"risk": "local_write", "has_amount": False}


def take_back(desk: Desk, request: Request, who: Somebody) -> Request:
    """Somebody takes the yes back."""
    return undo_deferred_approval(desk.id, request.id, who.principal.id)


def audited(desk: Desk, request: Request) -> list[tuple[str, Any]]:
    """What the audit log says of a request, and who did it."""
    with tenant_transaction(desk.id):
        lines = AuditEntry.objects.filter(object=f"request:{request.id}").order_by("at", "id")
        return list(lines.values_list("verb", "principal"))


def test_a_yes_waits_and_then_counts_as_its_person_s(lenient: Desk, later: Later) -> None:
    who, request = lenient.house.people.approver, lenient.ask(**LOW)
    assert lenient.say(request, who, reason="It is right.").status == "pending"
    assert (lenient.said(request), lenient.heard) == ([], [])
    left = take_effect(lenient.id, request.run_id)
    assert left is not None
    assert timedelta(0) < left <= timedelta(seconds=10)
    assert (lenient.again(request).status, later(request)) == ("pending", None)
    settled, (decision,) = lenient.again(request), lenient.said(request)
    assert (settled.status, settled.outcome, len(lenient.heard)) == ("decided", "approve", 1)
    assert (decision.principal, decision.reason) == (who.principal.id, "It is right.")
    assert decision.packet_digest == request.packet_digest
    assert isinstance(lenient.use(request), ConsumedGrant)
    assert [one.fate for one in kept_of(request)] == ["taken"]
    assert audited(lenient, request) == [("approval.defer", who.principal.id)]


def test_what_was_taken_back_was_never_said(lenient: Desk, later: Later) -> None:
    people, request = lenient.house.people, lenient.ask(**LOW)
    lenient.say(request, people.approver)
    assert take_back(lenient, request, people.approver).status == "pending"
    assert later(request) is None
    assert (lenient.said(request), lenient.again(request).status) == ([], "pending")
    who = people.approver.principal.id
    assert audited(lenient, request) == [("approval.defer", who), ("approval.undo", who)]
    with pytest.raises(NothingToUndo):
        take_back(lenient, request, people.approver)
    # Whoever took it back may say something else, and so may anybody.
    assert lenient.say(request, people.approver, "reject", reason="No.").outcome == "reject"


def test_it_is_taken_back_by_its_person_with_any_key_or_by_an_admin(lenient: Desk) -> None:
    people = lenient.house.people
    key = create_key(lenient.id, Role.REVIEWER, owner=people.approver.person).key.principal_id
    for back in (key, people.admin.principal.id):
        request = lenient.ask(**LOW)
        lenient.say(request, people.approver)
        for who in (people.second_approver, people.submitter, people.operator):
            with pytest.raises(NotYours):
                take_back(lenient, request, who)
        with pytest.raises(RequestNotFound):
            undo_deferred_approval(lenient.id, request.id, people.stranger.principal.id)
        undo_deferred_approval(lenient.id, request.id, back)
        assert [(one.fate, one.ended_by) for one in kept_of(request)] == [("undone", back)]


def test_a_key_that_only_reads_takes_nothing_back(lenient: Desk) -> None:
    person, request = lenient.house.people.approver, lenient.ask(**LOW)
    lenient.say(request, person)
    key = create_key(lenient.id, Role.AUDITOR, owner=person.person).key.principal_id
    with pytest.raises(NotYours):
        undo_deferred_approval(lenient.id, request.id, key)
    assert [one.fate for one in kept_of(request)] == ["stands"]


def test_it_takes_back_the_yes_that_is_meant_and_no_other(lenient: Desk) -> None:
    who, request = lenient.house.people.approver, lenient.ask(**LOW)
    lenient.say(request, who)
    take_back(lenient, request, who)
    again = lenient.say(request, who).kept
    assert again is not None
    first, second = kept_of(request)
    assert second.id == again.id
    with pytest.raises(NothingToUndo, match="another yes than this one stands"):
        undo_deferred_approval(lenient.id, request.id, who.principal.id, deferral=first.id)
    undo_deferred_approval(lenient.id, request.id, who.principal.id, deferral=second.id)
    assert [one.fate for one in kept_of(request)] == ["undone", "undone"]


def test_where_the_run_ended_nothing_is_there_to_take_back(lenient: Desk) -> None:
    who, request = lenient.house.people.approver, lenient.ask(**LOW)
    lenient.say(request, who)
    _ends(lenient, request)
    with pytest.raises(NothingToUndo, match="the request was already withdrawn"):
        take_back(lenient, request, who)
    assert [one.fate for one in kept_of(request)] == ["stands"]


def test_one_that_fails_keeps_no_other_from_its_turn(
    lenient: Desk, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, who = fresh_id(), lenient.house.people.approver
    asked = [lenient.ask(run=run, call=call, **LOW) for call in ("c1", "c2")]
    for request in asked:
        lenient.say(request, who)

    def broken(tenant_id: UUID, request_id: UUID, *said: Any, **more: Any) -> Request:
        if request_id == asked[0].id:
            raise IntegrityError
        return decide_request(tenant_id, request_id, *said, **more)

    with monkeypatch.context() as patched:
        patched.setattr("approvals.actions.undo.decide_request", broken)
        for request in asked:
            later(request)
    assert [kept_of(one)[0].fate for one in asked] == ["stands", "taken"]
    take_effect(lenient.id, run)
    assert [kept_of(one)[0].fate for one in asked] == ["taken", "taken"]


def test_who_let_one_take_effect_asks_for_no_second_look(lenient: Desk, later: Later) -> None:
    run, who = fresh_id(), lenient.house.people.approver
    first, second = (lenient.ask(run=run, call=call, **LOW) for call in ("c1", "c2"))
    for request in (first, second):
        lenient.say(request, who)
    # The second one's own message comes at its time.
    assert later(first) is None
    assert take_effect(lenient.id, run) is not None
    assert [kept_of(one)[0].fate for one in (first, second)] == ["taken", "stands"]


def test_runs_are_looked_at_once_and_tenants_in_turn(lenient: Desk, superuser: psycopg.Connection) -> None:
    run, who = fresh_id(), lenient.house.people.approver
    asked = [lenient.ask(run=run, call=f"c{n}", **LOW) for n in (1, 2)] + [lenient.ask(**LOW)]
    for request in asked:
        lenient.say(request, who)
        pass_time(superuser, request)
    mine = {run, asked[2].run_id}
    found = [one for one in deferred_runs(100) if one in mine]
    assert (len(found), set(found)) == (2, mine)
    # The second run of a tenant comes after the first of everybody: those that are asked for are enough.
    row = superuser.execute(
        "SELECT count(DISTINCT tenant_id) FROM approvals_deferral"
        " WHERE fate = 'stands' AND effective_at <= clock_timestamp()"
    )
    (tenants,) = row.fetchone() or (0,)
    assert len([one for one in deferred_runs(tenants) if one in mine]) == 1


def test_too_late_is_by_the_database_s_clock_though_nobody_looked(
    lenient: Desk, superuser: psycopg.Connection
) -> None:
    who, request = lenient.house.people.approver, lenient.ask(**LOW)
    lenient.say(request, who)
    pass_time(superuser, request)
    with pytest.raises(NothingToUndo, match="it took effect at"):
        take_back(lenient, request, who)
    take_effect(lenient.id, request.run_id)
    assert lenient.again(request).outcome == "approve"
    with pytest.raises(NothingToUndo, match="the request was already decided"):
        take_back(lenient, request, who)


@proves("R-APPR-5", part="while a yes can be taken back, nobody else's word is taken")
@pytest.mark.parametrize("kind", ["approve", "edit", "reject"])
def test_whoever_comes_second_is_told_who_and_when(lenient: Desk, kind: str) -> None:
    people, request = lenient.house.people, lenient.ask(**LOW)
    lenient.say(request, people.approver)
    (kept,) = kept_of(request)
    more = {"arguments": {**ASKED, "amount": "1.00"}} if kind == "edit" else {}
    for who in (people.second_approver, people.approver):
        with pytest.raises(YesStands, match="the reviewer has said yes already") as told:
            lenient.say(request, who, kind, **more)
        assert told.value.data["effective_at"] == kept.effective_at.isoformat()
    assert (len(kept_of(request)), lenient.said(request)) == (1, [])


@proves("R-APPR-5", part="two reviewers at once, and one of them can take it back")
@pytest.mark.parametrize("second", ["approve", "reject"])
def test_of_two_at_once_one_wins(lenient: Desk, second: str) -> None:
    people, request = lenient.house.people, lenient.ask(**LOW)
    outcomes = at_once(
        [
            partial(lenient.say, request, people.approver),
            partial(lenient.say, request, people.second_approver, second),
        ]
    )
    losers = [one for one in outcomes if isinstance(one, YesStands | AlreadyDecided)]
    assert (len(losers), sum(isinstance(one, Request) for one in outcomes)) == (1, 1)
    assert len(kept_of(request)) + len(lenient.said(request)) == 1


@proves("R-APPR-14", part="a yes that could be taken back takes effect once")
def test_two_workers_let_it_take_effect_once(lenient: Desk, superuser: psycopg.Connection) -> None:
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver)
    pass_time(superuser, request)
    at_once([partial(take_effect, lenient.id, request.run_id)] * 4)
    assert (len(lenient.said(request)), len(lenient.heard)) == (1, 1)
    assert [one.fate for one in kept_of(request)] == ["taken"]


@proves("R-APPR-3", part="an edit that could be taken back is judged again when it takes effect")
def test_an_edit_keeps_its_arguments(lenient: Desk, later: Later) -> None:
    people, request = lenient.house.people, lenient.ask(risk="local_write")
    other = {**ASKED, "amount": "20.00"}
    lenient.say(request, people.approver, "edit", arguments=other)
    later(request)
    settled = lenient.again(request)
    assert (settled.outcome, settled.granted_action) == ("edit", action_of(other))


def _leaves(desk: Desk, request: Request) -> str:
    remove_member(desk.id, desk.house.people.approver.person, Role.REVIEWER)
    return "whoever said it may decide nothing here any more"


def _ends(desk: Desk, request: Request) -> str:
    with tenant_transaction(desk.id):
        withdraw_open(desk.id, request.run_id, "run cancelled", database_now())
    return "The request was already withdrawn."


@proves("R-APPR-14", part="what could be taken back is checked again when it takes effect")
@pytest.mark.parametrize("happens", [_leaves, _ends])
def test_what_holds_no_more_lapses(
    lenient: Desk, later: Later, happens: Callable[[Desk, Request], str]
) -> None:
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver)
    because = happens(lenient, request)
    assert later(request) is None
    (kept,) = kept_of(request)
    assert (kept.fate, kept.ended_because, kept.ended_by) == ("lapsed", because, None)
    assert (lenient.said(request), lenient.heard) == ([], [])
    assert audited(lenient, request)[-1] == ("approval.lapse", None)


def test_a_request_that_expired_meanwhile_expires(
    lenient: Desk, later: Later, superuser: psycopg.Connection
) -> None:
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver)
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE approvals_request SET expires_at = now() WHERE id = %s", [request.id])
    later(request)
    assert lenient.again(request).status == "expired"
    assert [one.fate for one in kept_of(request)] == ["lapsed"]
    assert kept_of(request)[0].ended_because.startswith("The request expired at")

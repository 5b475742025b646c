"""A yes that can be taken back: where it is kept, how it is shown, and what the database holds of it."""

from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.actions.undo import take_effect, undo_deferred_approval
from approvals.actions.undo_settings import set_undo_window
from approvals.core.errors import RequestNotFound
from approvals.models import Deferral, Request
from approvals.queries.change_tokens import version_of
from approvals.queries.inbox import Filters, inbox_page, waiting_for
from approvals.queries.live_requests import changed_requests, written_since
from approvals.queries.people import decider_of
from approvals.queries.undo import list_undo_window_versions, window_now
from tenancy.core.errors import InvalidInput, Stale
from tenancy.db.change_cursor import mark_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tenancy.queries import standing_of
from tests.factories.approvals import Desk
from tests.factories.tenancy import Somebody
from tests.factories.undoing import kept_of
from tests.proves import proves

LOW: dict[str, Any] = {"risk": "local_write", "has_amount": False}
Refused = psycopg.errors.IntegrityConstraintViolation


def take_back(desk: Desk, request: Request, who: Somebody) -> Request:
    """Somebody takes the yes back."""
    return undo_deferred_approval(desk.id, request.id, who.principal.id)


@pytest.mark.parametrize(
    "asked",
    [
        {"risk": "network", "has_amount": False},
        {"risk": "destructive"},
        {**LOW, "quorum": 2},
        {**LOW, "expires_in": timedelta(seconds=65)},
    ],
    ids=["network", "destructive", "two people", "about to expire"],
)
def test_any_other_yes_counts_at_once(lenient: Desk, asked: dict[str, Any]) -> None:
    request = lenient.ask(**asked)
    lenient.say(request, lenient.house.people.approver)
    assert (len(lenient.said(request)), kept_of(request)) == (1, [])


def test_off_by_default_takes_not_one_query_more(desk: Desk) -> None:
    request = desk.ask(**LOW)
    with CaptureQueriesContext(connection) as captured:
        assert desk.say(request, desk.house.people.approver).outcome == "approve"
    texts = [query["sql"] for query in captured]
    # The one that asks for the time, which was there before, brings it along.
    (brings,) = [text for text in texts if "approvals_deferral" in text or "approvals_undowindow" in text]
    assert [text for text in texts if "clock_timestamp" in text] == [brings]
    # Two of them ask who is related to whom, and who was shown which key's secret.
    assert len(texts) == 14


def test_what_stands_is_nobody_s_to_decide_and_comes_back(lenient: Desk) -> None:
    people, request = lenient.house.people, lenient.ask(**LOW)

    def mine(who: Somebody) -> bool:
        with tenant_transaction(lenient.id):
            standing = standing_of(lenient.id, who.principal.id)
            assert standing is not None
            (row,) = inbox_page("open", decider_of(standing), Filters()).rows
            assert row.stands != row.together
            return waiting_for(decider_of(standing)).exists()

    assert mine(people.approver)
    lenient.say(request, people.approver)
    assert not (mine(people.approver))
    assert not (mine(people.second_approver))
    take_back(lenient, request, people.approver)
    assert mine(people.approver)
    assert mine(people.second_approver)


@proves("R-APPR-9", part="whoever follows the list sees a yes that can be taken back, and its end")
def test_a_follower_hears_of_it_and_of_its_end(lenient: Desk) -> None:
    request = lenient.ask(**LOW)
    versions = []
    for act in (partial(lenient.say, request, lenient.house.people.approver),
                partial(take_back, lenient, request, lenient.house.people.approver)):  # fmt: skip
        with tenant_transaction(lenient.id):
            mark = str(mark_now())
            versions.append(version_of(request.run_id))
        act()
        with tenant_transaction(lenient.id):
            assert request.id in [one.id for one in changed_requests(mark).requests]
            back = written_since([request.id], mark)
    assert back == {request.id}
    with tenant_transaction(lenient.id):
        assert len({*versions, version_of(request.run_id)}) == 3


@proves("R-APPR-14", part="what stands is guarded by the database")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE approvals_deferral SET effective_at = now() WHERE request_id = %(request)s",
        "UPDATE approvals_deferral SET principal = gen_random_uuid() WHERE request_id = %(request)s",
        "UPDATE approvals_deferral SET kind = 'edit' WHERE request_id = %(request)s",
        "DELETE FROM approvals_deferral WHERE request_id = %(request)s",
        "UPDATE approvals_deferral SET fate = 'gone', ended_at = now() WHERE request_id = %(request)s",
        "TRUNCATE approvals_deferral",
        (
            "INSERT INTO approvals_deferral SELECT (jsonb_populate_record(d, jsonb_build_object("
            "'id', gen_random_uuid()))).* FROM approvals_deferral d WHERE request_id = %(request)s"
        ),
        (
            "INSERT INTO approvals_decision (id, tenant_id, request_id, principal, owner, role, kind, reason,"
            " packet_digest, previous, at, digest) SELECT gen_random_uuid(), tenant_id, request_id,"
            " gen_random_uuid(), gen_random_uuid(), 'reviewer', 'reject', '', packet_digest, packet_digest,"
            " now(), packet_digest FROM approvals_deferral WHERE request_id = %(request)s"
        ),
    ],
)
def test_what_stands_is_changed_by_nobody(
    lenient: Desk, superuser: psycopg.Connection, statement: str
) -> None:
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver)
    with tenant_transaction(lenient.id):
        before = list(Deferral.objects.values())
    with pytest.raises(psycopg.errors.IntegrityError):
        superuser.execute(statement.encode(), {"request": request.id})
    with tenant_transaction(lenient.id):
        assert list(Deferral.objects.values()) == before
    assert lenient.said(request) == []


@pytest.mark.parametrize(
    "other",
    [
        {"effective_at": "d.at + interval '11 s'"},
        {"fate": "'taken'"},
        {"kind": "'reject'"},
        {"owner": "(SELECT submitter_owner FROM approvals_request r WHERE r.id = d.request_id)"},
        {"packet_digest": "repeat('f', 64)"},
        {"run_id": "gen_random_uuid()"},
    ],
    ids=str,
)
def test_what_is_not_to_be_kept_back_is_not(
    lenient: Desk, superuser: psycopg.Connection, other: dict[str, str]
) -> None:
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver)
    take_back(lenient, request, lenient.house.people.approver)
    given = {"id": "gen_random_uuid()", "fate": "'stands'", "ended_at": "NULL", **other}
    built = ", ".join(f"'{name}', {value}" for name, value in given.items())
    copy = (
        f"INSERT INTO approvals_deferral SELECT (jsonb_populate_record(d, jsonb_build_object({built}))).*"
        " FROM approvals_deferral d WHERE request_id = %s"
    )
    with pytest.raises(Refused):
        superuser.execute(copy.encode(), [request.id])
    assert len(kept_of(request)) == 1


def test_a_yes_to_more_than_the_least_is_not_kept_back_by_the_database_either(
    lenient: Desk, superuser: psycopg.Connection
) -> None:
    least, more = lenient.ask(**LOW), lenient.ask(risk="network", has_amount=False)
    lenient.say(least, lenient.house.people.approver)
    copy = (
        "INSERT INTO approvals_deferral SELECT (jsonb_populate_record(d, jsonb_build_object("
        "'id', gen_random_uuid(), 'request_id', r.id, 'run_id', r.run_id,"
        " 'packet_digest', r.packet_digest))).*"
        " FROM approvals_deferral d, approvals_request r WHERE d.request_id = %s AND r.id = %s"
    )
    with pytest.raises(Refused):
        superuser.execute(copy.encode(), [least.id, more.id])
    assert kept_of(more) == []


def test_the_window_is_kept_in_versions_with_their_reasons(desk: Desk) -> None:
    by = desk.house.people.admin.principal.id
    give = partial(set_undo_window, desk.id, by=by)
    assert give(5, expected=0, reason="Fingers slip").version == 1
    assert give(5, expected=1, reason="The same").version == 1
    assert give(0, expected=None, reason="No more").seconds == 0
    with pytest.raises(Stale):
        give(3, expected=1, reason="Late")
    for seconds, reason in ((11, "Long"), (-1, "Short"), (3, " ")):
        with pytest.raises(InvalidInput):
            give(seconds, expected=None, reason=reason)
    with tenant_transaction(desk.id):
        assert (window_now().version, [(one.seconds, one.reason) for one in list_undo_window_versions()]) == (
            2, [(0, "No more"), (5, "Fingers slip")],
        )  # fmt: skip
        lines = AuditEntry.objects.filter(verb="undo_window.set").order_by("at", "id")
        assert [line.after["seconds"] for line in lines] == [5, 0]


def test_another_tenant_s_is_none(lenient: Desk) -> None:
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver)
    other = lenient.house.people.other_tenant
    assert take_effect(other.id, request.run_id) is None
    with pytest.raises(RequestNotFound):
        undo_deferred_approval(other.id, request.id, fresh_id())
    assert [one.fate for one in kept_of(request)] == ["stands"]

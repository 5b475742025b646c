"""What PostgreSQL refuses by itself, whoever asks."""

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError

from approvals.core.digests import COLUMNS, decision_digest
from approvals.models import Decision, Request
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.factories.approvals import ASKED, Desk
from tests.factories.tenancy import Somebody
from tests.proves import proves
from traces.core.canonical import encode_canonical

NOW = datetime(2026, 11, 21, tzinfo=UTC)
Refused = psycopg.errors.IntegrityConstraintViolation
FIXED = sorted(
    {field.attname for field in Request._meta.concrete_fields}
    - {"status", "settled_at", "outcome", "granted_action", "ended_because", "tenant_id"}
)
OTHER = {
    "id": "gen_random_uuid()",
    "run_id": "gen_random_uuid()",
    "packet": "'\\x00'",
    "quorum": "9",
    "amount": "9",
    "has_amount": "NOT has_amount",
    "sealed": "NOT sealed",
    "answer_schema": "'{}'",
    "submitter": "gen_random_uuid()",
    "submitter_owner": "gen_random_uuid()",
    "retriers": "ARRAY[gen_random_uuid()]",
    "retrier_owners": "ARRAY[gen_random_uuid()]",
    "grant_seconds": "9",
    "created_at": "now()",
    "expires_at": "now()",
}


@proves("A1", part="the request's row")
@proves("R-APPR-2", part="fixed when made")
@pytest.mark.parametrize("column", FIXED)
def test_what_was_asked_cannot_be_changed(desk: Desk, superuser: psycopg.Connection, column: str) -> None:
    request = desk.ask()
    other = OTHER.get(column, "'x'")
    statement = f"UPDATE approvals_request SET {column} = {other} WHERE id = %s"
    with pytest.raises(Refused):
        superuser.execute(statement, [request.id])


@proves("R-APPR-2", part="once, in the database")
@pytest.mark.parametrize("status", ["pending", "decided", "withdrawn"])
def test_what_was_settled_stays_settled(desk: Desk, superuser: psycopg.Connection, status: str) -> None:
    request = desk.say(desk.ask(), desk.house.people.approver, "reject")
    with pytest.raises(Refused):
        superuser.execute(
            "UPDATE approvals_request SET status = %s, settled_at = NULL WHERE id = %s", [status, request.id]
        )


@proves("R-APPR-2", part="decided by a decision")
def test_a_request_is_not_decided_without_a_decision(desk: Desk) -> None:
    request = desk.ask()
    with tenant_transaction(desk.id), pytest.raises(IntegrityError):
        Request.objects.filter(id=request.id).update(status="decided", outcome="approve", settled_at=NOW)


def test_a_settled_request_has_its_time_and_a_pending_one_has_none(desk: Desk) -> None:
    request = desk.ask()
    with tenant_transaction(desk.id), pytest.raises(IntegrityError):
        Request.objects.filter(id=request.id).update(status="withdrawn")


def test_one_call_asks_once_at_a_time(desk: Desk) -> None:
    run = fresh_id()
    first = desk.ask(run=run)
    with pytest.raises(IntegrityError):
        desk.ask(run=run)
    desk.say(first, desk.house.people.approver, "reject")
    assert desk.ask(run=run).status == "pending"


LARGE = {**ASKED, "amount": "300.00"}


def insert(desk: Desk, request: Request, who: Somebody, **more: Any) -> Decision:
    """A decision written past the verb."""
    row: dict[str, Any] = {
        "id": fresh_id(),
        "tenant_id": desk.id,
        "request_id": request.id,
        "principal": who.principal.id,
        "owner": who.person.id,
        "role": "reviewer",
        "kind": "approve",
        "reason": "",
        "arguments": None,
        "answer": None,
        "packet_digest": request.packet_digest,
        "previous": request.packet_digest,
        "at": NOW,
        "quorum": max(request.quorum, 1),
    }
    row |= more
    assert set(row) == set(COLUMNS)
    with tenant_transaction(desk.id):
        return Decision.objects.create(**row, digest=decision_digest(row))


@proves("A8", part="in the database")
def test_a_decision_on_one_s_own_run_is_no_row(desk: Desk) -> None:
    request, people = desk.ask(), desk.house.people
    with pytest.raises(IntegrityError, match="not this person's"):
        insert(desk, request, people.submitter)
    with pytest.raises(IntegrityError, match="not this person's"):
        insert(desk, request, people.approver, packet_digest="0" * 64)
    insert(desk, request, people.approver)


@proves("R-APPR-5", part="an edit's quorum stands in its row")
def test_a_word_that_agrees_says_how_many_must(desk: Desk) -> None:
    request, people = desk.ask(), desk.house.people
    edit = {"kind": "edit", "arguments": encode_canonical(LARGE)}
    for wrong in ({"quorum": None}, {"quorum": 2}, {**edit, "quorum": None}, {**edit, "quorum": 0},
                  {"kind": "reject", "quorum": 1}):  # fmt: skip
        with pytest.raises(IntegrityError, match="says how many people must"):
            insert(desk, request, people.approver, **wrong)
    first = insert(desk, request, people.approver, **edit, quorum=2)
    with pytest.raises(IntegrityError, match="says how many people must"):
        insert(desk, request, people.second_approver, **edit, quorum=1, previous=first.digest)
    insert(desk, request, people.second_approver, **edit, quorum=2, previous=first.digest)


@proves("R-APPR-5", part="fewer than an edit's quorum settle nothing, in the database")
def test_an_edit_is_not_settled_by_fewer_than_it_needs(desk: Desk) -> None:
    request, people = desk.ask(), desk.house.people
    desk.say(request, people.approver, "edit", arguments=LARGE)
    desk.say(request, people.second_approver, "edit", arguments={**LARGE, "amount": "301.00"})
    (first, _) = desk.said(request)
    assert first.quorum == 2
    settled = {"status": "decided", "outcome": "edit", "settled_at": NOW}
    with tenant_transaction(desk.id), pytest.raises(IntegrityError, match="fewer people agreed"):
        Request.objects.filter(id=request.id).update(**settled)
    assert desk.say(request, people.admin, "edit", arguments=LARGE).status == "decided"


def test_an_approval_is_not_settled_by_fewer_than_were_asked(desk: Desk) -> None:
    request = desk.ask(quorum=2)
    desk.say(request, desk.house.people.approver)
    settled = {"status": "decided", "outcome": "approve", "settled_at": NOW}
    with tenant_transaction(desk.id), pytest.raises(IntegrityError, match="fewer people agreed"):
        Request.objects.filter(id=request.id).update(**settled)


def test_a_second_line_of_votes_cannot_begin(desk: Desk) -> None:
    request, people = desk.ask(quorum=2), desk.house.people
    desk.say(request, people.approver)
    with pytest.raises(IntegrityError, match="decision_one_line"):
        insert(desk, request, people.second_approver)


@proves("R-APPR-2", part="append-only")
@pytest.mark.parametrize("table", ["decision", "grantuse"])
@pytest.mark.parametrize("verb", ["UPDATE approvals_{} SET at = now()", "DELETE FROM approvals_{}"])
def test_words_and_uses_are_never_changed(
    desk: Desk, superuser: psycopg.Connection, table: str, verb: str
) -> None:
    desk.use(desk.say(desk.ask(), desk.house.people.approver))
    with tenant_transaction(desk.id), pytest.raises(psycopg.errors.InsufficientPrivilege):
        raw_cursor().execute(verb.format(table))
    with pytest.raises(Refused, match="append-only"):
        superuser.execute(verb.format(table))


@pytest.mark.parametrize("table", ["request", "decision", "grantuse"])
def test_nobody_empties_a_table(desk: Desk, superuser: psycopg.Connection, table: str) -> None:
    with pytest.raises(Refused, match="append-only"):
        superuser.execute(f"TRUNCATE approvals_{table} CASCADE")


@proves("Z4", part="uses")
def test_a_use_cannot_point_into_another_tenant(desk: Desk) -> None:
    request = desk.ask()
    with (
        tenant_transaction(desk.house.people.other_tenant.id),
        pytest.raises(psycopg.errors.ForeignKeyViolation),
    ):
        raw_cursor().execute(
            """INSERT INTO approvals_grantuse (tenant_id, id, effect_id, action_digest, at)
               VALUES (%s, %s, 'e', 'a', now())""",
            [desk.house.people.other_tenant.id, request.id],
        )

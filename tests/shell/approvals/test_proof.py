"""Whatever a superuser alters or deletes, the proof names it (R-TRACE-3's share)."""

from typing import Any

import psycopg
import pytest

from approvals.core.digests import COLUMNS
from approvals.models import Request
from approvals.verification import check_run
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.approvals import Desk
from tests.proves import proves

ALTERED = {
    "id": "gen_random_uuid()",
    "tenant_id": None,
    "request_id": "gen_random_uuid()",
    "principal": "gen_random_uuid()",
    "owner": "gen_random_uuid()",
    "role": "'admin'",
    "kind": "'edit'",
    "reason": "'forged'",
    "arguments": "'{}'",
    "answer": "'{}'",
    "packet_digest": "repeat('0', 64)",
    "previous": "repeat('0', 64)",
    "at": "at + interval '1 second'",
    "quorum": "1",
    "digest": "repeat('0', 64)",
}
SHOWN = {
    "packet": "'{}'",
    "packet_digest": "repeat('0', 64)",
    "action_digest": "repeat('0', 64)",
    "tool": "'mail.send'",
    "queue": "'other'",
    "quorum": "1",
    "risk": "'read_only'",
    "kind": "'clarification'",
    "outcome": "'reject'",
    "granted_action": "repeat('0', 64)",
}


def tamper(superuser: psycopg.Connection, statement: str, *values: Any) -> None:
    """Alter rows with every trigger switched off."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        assert superuser.execute(statement, values).rowcount == 1


def agreed(desk: Desk) -> Request:
    """A request that two people agreed to, and whose grant was used."""
    request = desk.ask(quorum=2)
    desk.say(request, desk.house.people.approver)
    settled = desk.say(request, desk.house.people.second_approver)
    desk.use(settled)
    assert faults(desk, settled) == []
    return settled


def faults(desk: Desk, request: Request) -> list[str]:
    """What the proof names, as `table.column`."""
    with tenant_transaction(desk.id):
        return [f"{fault.where.split()[0]}.{fault.column}" for fault in check_run(request.run_id)]


def test_every_column_of_a_decision_is_tried() -> None:
    assert {*COLUMNS, "digest"} == set(ALTERED)


@proves("R-TRACE-3", part="decisions altered")
@pytest.mark.parametrize("which", [0, 1], ids=["first", "last"])
@pytest.mark.parametrize("column", ALTERED)
def test_an_altered_decision_is_named(
    desk: Desk, superuser: psycopg.Connection, column: str, which: int
) -> None:
    request = agreed(desk)
    decision = desk.said(request)[which]
    value = ALTERED[column] or f"'{desk.house.people.other_tenant.id}'"
    tamper(superuser, f"UPDATE approvals_decision SET {column} = {value} WHERE id = %s", decision.id)
    assert faults(desk, request)[0].startswith("Decision.")


@proves("R-TRACE-3", part="decisions deleted")
@pytest.mark.parametrize("which", [0, 1], ids=["first", "last"])
def test_a_deleted_decision_is_missed(desk: Desk, superuser: psycopg.Connection, which: int) -> None:
    request = agreed(desk)
    tamper(superuser, "DELETE FROM approvals_decision WHERE id = %s", desk.said(request)[which].id)
    assert faults(desk, request)


@pytest.mark.parametrize("column", SHOWN)
def test_an_altered_request_is_named(desk: Desk, superuser: psycopg.Connection, column: str) -> None:
    request = agreed(desk)
    tamper(superuser, f"UPDATE approvals_request SET {column} = {SHOWN[column]} WHERE id = %s", request.id)
    assert faults(desk, request)


def test_fewer_people_than_were_needed_are_named(desk: Desk, superuser: psycopg.Connection) -> None:
    request = desk.ask(quorum=2)
    desk.say(request, desk.house.people.approver)
    tamper(
        superuser,
        """UPDATE approvals_request SET status = 'decided', outcome = 'approve', settled_at = now(),
                  granted_action = action_digest WHERE id = %s""",
        request.id,
    )
    assert faults(desk, request) == ["Decision.request_id"]


def test_a_use_of_what_was_not_granted_is_named(desk: Desk, superuser: psycopg.Connection) -> None:
    request = agreed(desk)
    statement = "UPDATE approvals_grantuse SET action_digest = repeat('0', 64) WHERE id = %s"
    tamper(superuser, statement, request.id)
    assert faults(desk, request) == ["GrantUse.action_digest"]

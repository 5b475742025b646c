"""Whatever a superuser alters in a yes that was kept back, the proof names it (R-TRACE-3's share)."""

from typing import Any

import psycopg
import pytest

from approvals.models import Deferral, Request
from tests.factories.approvals import Desk
from tests.factories.undoing import kept_of
from tests.proves import proves
from tests.shell.approvals.conftest import Later
from tests.shell.approvals.test_proof import faults, tamper
from tests.shell.approvals.test_undoing import LOW, take_back

TAKEN = {
    "run_id": ("gen_random_uuid()", "packet_digest"),
    "principal": ("gen_random_uuid()", "principal"),
    "owner": ("gen_random_uuid()", "fate"),
    "kind": ("'edit'", "kind"),
    "reason": ("'forged'", "reason"),
    "arguments": ("'{}'", "arguments"),
    "packet_digest": ("repeat('0', 64)", "packet_digest"),
    "at": ("effective_at + interval '1 second'", "effective_at"),
    "effective_at": ("ended_at + interval '1 second'", "effective_at"),
    "fate": ("'undone'", "fate"),
    "ended_at": ("ended_at + interval '1 second'", "fate"),
}


def named(desk: Desk, request: Request) -> list[str]:
    """The columns that the proof names. What the factory's requests say besides their packet is no matter."""
    return [fault for fault in faults(desk, request) if fault.startswith("Deferral.")]


def alter(superuser: psycopg.Connection, kept: Deferral, column: str, value: str) -> None:
    """Alter one column of a yes."""
    tamper(superuser, f"UPDATE approvals_deferral SET {column} = {value} WHERE id = %s", kept.id)


def taken(lenient: Desk, later: Later) -> Request:
    """A request to which a yes was kept back, and took effect."""
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver, reason="It is right.")
    later(request)
    assert [one.fate for one in kept_of(request)] == ["taken"]
    assert named(lenient, request) == []
    return request


@proves("R-TRACE-3", part="a yes that was kept back and took effect")
@pytest.mark.parametrize("column", TAKEN)
def test_an_altered_yes_that_took_effect_is_named(
    lenient: Desk, later: Later, superuser: psycopg.Connection, column: str
) -> None:
    request = taken(lenient, later)
    value, expected = TAKEN[column]
    alter(superuser, kept_of(request)[0], column, value)
    assert f"Deferral.{expected}" in named(lenient, request)


@proves("R-TRACE-3", part="a yes that was taken back")
def test_a_yes_that_was_taken_back_and_is_said_to_have_counted_is_named(
    lenient: Desk, superuser: psycopg.Connection
) -> None:
    request = lenient.ask(**LOW)
    lenient.say(request, lenient.house.people.approver)
    assert named(lenient, request) == []
    take_back(lenient, request, lenient.house.people.approver)
    assert named(lenient, request) == []
    # Whoever took it back may say something else afterwards, and that is no fault.
    lenient.say(request, lenient.house.people.approver, "reject", reason="No.")
    assert named(lenient, request) == []
    kept: Any = kept_of(request)[0]
    alter(superuser, kept, "fate", "'taken'")
    assert named(lenient, request) == ["Deferral.fate"]

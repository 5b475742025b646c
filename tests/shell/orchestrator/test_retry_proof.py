"""Where a retry began is held against its row and the run before it (R-TRACE-3, R-SESS-9)."""

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from orchestrator.runs.actions.run_signals import cancel
from tests.factories.retrying import retried
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def unguarded(superuser: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The superuser without the triggers."""
    superuser.execute("SET session_replication_role = replica")
    yield superuser
    superuser.execute("SET session_replication_role = origin")


@pytest.fixture
def line(world: World) -> tuple[UUID, UUID]:
    """An ended run and its retry, of which nothing is wrong."""
    run = world.submit("tool-loop", "How much is 1 + 1?")
    cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    world.drive(run)
    again = retried(world, run)
    assert (world.faults(run), world.faults(again)) == ([], [])
    return run, again


@proves("R-TRACE-3", part="a retry")
@pytest.mark.parametrize(
    ("change", "column"),
    [
        ("retry_of_id = gen_random_uuid()", "retry_of_id"),
        ("retry_record = retry_record + 1", "retry_record"),
        ("retried_by = gen_random_uuid()", "retried_by"),
        ("retry_of_id = NULL, retry_record = NULL, retried_by = NULL, retry_key = ''", "retry_of_id"),
    ],
)
def test_a_row_that_says_otherwise_is_named(
    world: World, line: tuple[UUID, UUID], unguarded: psycopg.Connection, change: str, column: str
) -> None:
    _, again = line
    unguarded.execute(f"UPDATE orchestrator_run SET {change} WHERE id = %s".encode(), (again,))
    assert column in [fault.column for fault in world.faults(again) if fault.where == "Run"]


@proves("R-TRACE-3", part="a retry")
def test_a_run_that_only_its_row_calls_a_retry_is_named(
    world: World, line: tuple[UUID, UUID], unguarded: psycopg.Connection
) -> None:
    run, again = line
    other = world.submit("tool-loop", "How much is 2 + 2?")
    change = "UPDATE orchestrator_run SET retry_of_id = %s, retry_record = 0, retried_by = %s WHERE id = %s"
    unguarded.execute(change, (again, world.people.operator.id, other))
    assert [(fault.where, fault.column) for fault in world.faults(other)] == [("Run", "retry_of_id")]
    assert world.faults(run) == []


@proves("R-TRACE-3", part="a retry")
def test_another_record_than_it_began_after_is_named(
    world: World, line: tuple[UUID, UUID], unguarded: psycopg.Connection
) -> None:
    run, again = line
    unguarded.execute(
        "UPDATE traces_record SET hash = sha256('another') WHERE run_id = %s AND number = 0", (run,)
    )
    found = [fault for fault in world.faults(again) if fault.where == f"Record of {run}"]
    assert [(fault.number, fault.column) for fault in found] == [(0, "hash")]

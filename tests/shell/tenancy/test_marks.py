"""Marks: whatever commits in whatever order, a list's cursor misses no row."""

from time import monotonic
from uuid import UUID

import psycopg
import pytest

from orchestrator.console.queries.change_feed import changed_runs
from orchestrator.runs.models.run import Run
from tenancy.db import change_cursor
from tenancy.db.change_cursor import ChangeCursor, mark_now, mark_of, mark_text
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.world import World

PATIENCE_SECONDS = 60.0
ASKED = "How much is 1 + 1?"
TOUCH = "UPDATE orchestrator_run SET reason = %s WHERE id = %s"


def changed(world: World, after: str) -> tuple[set[UUID], str, bool]:
    """What changed after a cursor."""
    with tenant_transaction(world.id):
        found = changed_runs(after)
    return {run.id for run in found.runs}, found.seq, found.more


def now(world: World) -> str:
    """The cursor of a page that is drawn now."""
    with tenant_transaction(world.id):
        return str(mark_now())


def test_a_change_that_commits_after_a_later_one_is_not_missed(
    world: World, superuser: psycopg.Connection
) -> None:
    slow, quick = world.submit("tool-loop", ASKED), world.submit("tool-loop", ASKED)
    after = now(world)
    superuser.execute("BEGIN")
    superuser.execute(TOUCH, ("the slow one", slow))
    with tenant_transaction(world.id):
        Run.objects.filter(id=quick).update(reason="the quick one")
    # The slow one's submission may be told again here, while anybody else's older transaction is open.
    seen, after, _ = changed(world, after)
    assert quick in seen
    superuser.execute("COMMIT")
    seen, after, _ = changed(world, after)
    assert slow in seen
    # As long as any transaction of the server is older, a change is told again rather than missed.
    until = monotonic() + PATIENCE_SECONDS
    while changed(world, after)[0]:
        assert monotonic() < until
        _, after, _ = changed(world, after)


def test_rows_written_behind_a_savepoint_count(world: World, superuser: psycopg.Connection) -> None:
    run = world.submit("tool-loop", ASKED)
    superuser.execute("BEGIN")
    superuser.execute("SELECT pg_current_xact_id()")
    after = now(world)
    superuser.execute("SAVEPOINT here")
    superuser.execute(TOUCH, ("inside", run))
    superuser.execute("COMMIT")
    assert changed(world, after)[0] == {run}


def test_a_run_that_ended_between_two_looks_is_told(world: World) -> None:
    after = now(world)
    run = world.submit("tool-loop", ASKED)
    assert world.drive(run).status == "completed"
    assert changed(world, after)[0] == {run}


def test_many_changes_come_in_pages_that_leave_none_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_cursor, "A_READ", 3)
    after = now(world)
    runs = {world.submit("tool-loop", ASKED) for _ in range(10)}
    with tenant_transaction(world.id):
        Run.objects.filter(id__in=list(runs)[:5]).update(reason="five in one transaction")
    seen: set[UUID] = set()
    for _ in range(20):
        found, after, more = changed(world, after)
        seen |= found
        if not more:
            break
    assert not more
    assert seen == runs


def test_from_the_beginning_come_those_that_live(world: World) -> None:
    run = world.submit("tool-loop", ASKED)
    assert changed(world, "")[0] == {run}


def test_a_cursor_from_another_numbering_starts_again(world: World) -> None:
    run = world.submit("tool-loop", ASKED)
    beyond = mark_of(now(world))
    assert beyond is not None
    assert changed(world, str(ChangeCursor(beyond.xid + 10**9, beyond.at)))[0] == {run}


def test_cursors_are_read_back_as_they_were_written_and_sort_by_age(world: World) -> None:
    cursor = now(world)
    assert str(mark_of(cursor)) == cursor
    world.submit("tool-loop", ASKED)
    assert now(world) > cursor > ""


@pytest.mark.parametrize(
    "given", ["x", "1-2", "-", "0" * 20, "0" * 20 + "-", "9" * 20 + "-" + "9" * 15, 7, [], True]
)
def test_what_is_no_cursor_of_ours_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="cursor"):
        mark_text(given)

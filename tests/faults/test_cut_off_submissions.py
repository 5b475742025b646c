"""Submissions whose first try was cut off: the repetition is one act, and is not kept waiting (W6)."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, connections

from orchestrator.core.common.goal import Goal
from orchestrator.runs.actions import submit
from orchestrator.runs.actions.rate_limits import hold_rates
from orchestrator.runs.actions.submit import Submission, SubmittedTask, Submitter, submit_task
from orchestrator.runs.models.run import Run
from tenancy.core.roles import Role
from tenancy.db import process_lock
from tenancy.db.process_lock import ProcessLock, is_lock_held
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import IdempotencyKey
from tenancy.rest import idempotency
from tenancy.rest.idempotency import KeyInUse, StoredResponse, execute_once
from tests.doors.api.program import program, refusal
from tests.factories.world import World
from tests.proves import proves

BODY = {"workflow": "tool-loop", "goal": {"objective": "How much is (12 + 30) * 2?"}}
PATIENCE_SECONDS = 30.0


@pytest.fixture
def lock(world: World) -> Iterator[ProcessLock]:
    """The lock of a process, held."""
    found = ProcessLock()
    found.hold()
    yield found
    found.end()


def submitter(world: World) -> Submitter:
    """Whoever submits in this tenant."""
    who = world.people.submitter
    return Submitter(principal=who.principal.id, owner=who.person.id, scopes=("submit", "read"))


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether a condition holds within the patience of these tests; the server notices in its own time."""
    until = monotonic() + PATIENCE_SECONDS
    while not condition():
        if monotonic() > until:
            return False
        sleep(0.02)
    return True


def cut_off(world: World, lock: int | None) -> None:
    """Make the answered submissions of a tenant look as when their process was cut off before it answered."""
    with tenant_transaction(world.id):
        IdempotencyKey.objects.update(status=None, answer=None, process_lock=lock)


@proves("R-API-1", part="a key in use says when to try again")
@proves("W6", part="cut off by a process that lives, and by one that died after its commit")
def test_a_submission_repeated_waits_for_a_live_process_and_finds_the_run_of_a_dead_one(
    world: World, lock: ProcessLock
) -> None:
    submitter = program(world.id, Role.CLIENT)
    first = submitter.post("/tasks", BODY, once="k")
    cut_off(world, lock.number)
    again = submitter.post("/tasks", BODY, once="k")
    assert refusal(again) == (409, "idempotency-key-in-use")
    assert again["Retry-After"] == "1"
    lock.end()
    assert comes_true(lambda: not is_lock_held(lock.number))
    found = submitter.post("/tasks", BODY, once="k")
    assert (found.status_code, found.json()["run"]["id"]) == (202, first.json()["run"]["id"])
    with tenant_transaction(world.id):
        assert Run.objects.count() == 1


@proves("W6", part="the database was away when the first try ended, and its process lives")
@pytest.mark.parametrize("step", ["_store_response", "_delete_claim"])
def test_a_submission_cut_off_by_the_database_is_made_at_once_when_it_is_repeated(
    world: World, lock: ProcessLock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("terminating connection")

    monkeypatch.setattr(idempotency, "process_lock_number", lambda: lock.number)
    submitter = program(world.id, Role.CLIENT)
    with monkeypatch.context() as cut:
        cut.setattr(idempotency, step, away)
        if step == "_delete_claim":
            cut.setattr("orchestrator.api.tasks.submit_task", away)
        with pytest.raises(OperationalError):
            submitter.post("/tasks", BODY, once="k")
    found = submitter.post("/tasks", BODY, once="k")
    assert found.status_code == 202, found.content
    with tenant_transaction(world.id):
        assert Run.objects.count() == 1


@proves("R-API-1", part="what is under way for longer than a minute is not begun again")
def test_a_post_under_way_for_long_is_not_begun_again_by_its_process(
    world: World, lock: ProcessLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "process_lock_number", lambda: lock.number)
    monkeypatch.setattr(idempotency, "PATIENCE", timedelta(0))
    principal = world.people.submitter.principal.id
    acts = list[int]()

    def act() -> StoredResponse:
        acts.append(len(acts))
        if len(acts) == 1:
            with pytest.raises(KeyInUse):
                execute_once(world.id, principal, "k", "/tasks", {}, act)
        return StoredResponse(200, {})

    assert execute_once(world.id, principal, "k", "/tasks", {}, act) == StoredResponse(200, {})
    assert acts == [0]


@proves("W6", part="the first try commits while the second begins")
def test_a_submission_repeated_before_its_first_try_commits_is_one_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = Event(), Event()

    def slowly(*given: Any) -> None:
        hold_rates(*given)
        if not begun.is_set():
            begun.set()
            assert go_on.wait(PATIENCE_SECONDS)

    def submitted() -> SubmittedTask:
        try:
            asked = Submission(workflow="tool-loop", goal=Goal(objective="Hello"), idempotency_key="k")
            return submit_task(world.id, submitter(world), asked)
        finally:
            connections.close_all()

    monkeypatch.setattr(submit, "hold_rates", slowly)
    with ThreadPoolExecutor(2) as threads:
        first: Future[SubmittedTask] = threads.submit(submitted)
        assert begun.wait(PATIENCE_SECONDS)
        second = threads.submit(submitted)
        with pytest.raises(TimeoutError):
            second.result(1.0)
        go_on.set()
        assert first.result(PATIENCE_SECONDS).run == second.result(PATIENCE_SECONDS).run


def test_a_lock_is_taken_again_when_its_connection_is_cut(
    lock: ProcessLock, superuser: psycopg.Connection
) -> None:
    (before,) = backends(lock.number)
    superuser.execute("SELECT pg_terminate_backend(%s)", (before,))
    assert comes_true(lambda: backends(lock.number) not in ([], [before]))


def backends(number: int) -> list[int]:
    """The server's processes that hold the lock of this number."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND (classid::bigint << 32 | objid::bigint) = %s",
            (number,),
        )
        return [row[0] for row in cursor.fetchall()]


@pytest.mark.usefixtures("world")
def test_a_database_without_sessions_has_no_locks(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.INTERLOCK_DATABASE_SESSIONS = False
    assert (process_lock.hold_process_lock(), process_lock.process_lock_number()) == (None, None)

"""Workers that die, and backlogs nobody is told of: the sweep notices, and drives all runs side by side."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Barrier
from time import monotonic, sleep
from uuid import UUID

import psycopg
import pytest
from celery.exceptions import Reject
from pytest_django import Settings

from orchestrator import jobs
from orchestrator.runs.models.run import Run
from orchestrator.tenants.queries.cross_tenant import abandoned_runs
from orchestrator.worker.fair_scheduler import FairScheduler
from orchestrator.worker.heartbeat import Heartbeat
from orchestrator.worker.leases import claim_lease, expire_dead_lease
from orchestrator.worker.process import Process
from orchestrator.worker.sweeper import GONE_SECONDS, Sweeper, SweepThreads
from tenancy.db.process_lock import ProcessLock
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.world import World, fresh_worker
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves
from tests.servers import ROOT, TestServers

PATIENCE_SECONDS = 60.0
FOUR = 4


@pytest.fixture
def lock(world: World) -> Iterator[ProcessLock]:
    """The lock of a worker's process, held."""
    found = ProcessLock()
    found.hold()
    yield found
    found.end()


@contextmanager
def sweeping(sweep: Sweeper) -> Iterator[None]:
    """The sweep at work for the length of the block."""
    sweep.start()
    try:
        yield
    finally:
        sweep.stop()
        sweep.join(PATIENCE_SECONDS)


def leased(world: World, worker: str) -> UUID:
    """A run whose lease a worker took, for a quarter of an hour."""
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    assert claim_lease(world.id, run, worker) is not None
    return run


def wait_until_ended(world: World, runs: list[UUID]) -> None:
    """Until all of them have ended."""
    until = monotonic() + PATIENCE_SECONDS
    with tenant_transaction(world.id):
        while Run.objects.filter(id__in=runs, finished_at=None).exists():
            assert monotonic() < until, "they do not end"
            sleep(0.05)


@proves("R-SESS-2", part="what a dead worker had is taken up before its lease has run out")
def test_the_runs_of_a_dead_worker_go_on_before_their_leases_run_out(
    world: World, superuser: psycopg.Connection, settings: Settings, lock: ProcessLock
) -> None:
    Clock(superuser).park_the_rest()
    settings.INTERLOCK_LEASE_SECONDS, settings.INTERLOCK_SWEEP_SECONDS = 900, 0.2
    runs = [leased(world, f"elsewhere:4711:lock:{lock.number}") for _ in range(2)]
    assert abandoned_runs(20) == []
    assert not expire_dead_lease(world.id, runs[0]), "its worker lives"
    lock.end()
    began = monotonic()
    with sweeping(Sweeper(fresh_worker())):
        wait_until_ended(world, runs)
    assert monotonic() - began >= GONE_SECONDS, "a lock may be away for a moment"


@proves("R-SESS-2", part="a worker that lives, and one without a lock, keep their leases")
def test_a_live_worker_and_one_without_a_lock_keep_their_leases(
    world: World, superuser: psycopg.Connection, settings: Settings, lock: ProcessLock
) -> None:
    Clock(superuser).park_the_rest()
    settings.INTERLOCK_LEASE_SECONDS = 900
    for name in (f"elsewhere:4711:lock:{lock.number}", "elsewhere:4711:0a1b2c3d"):
        run = leased(world, name)
        assert abandoned_runs(20) == []
        assert not expire_dead_lease(world.id, run)
        assert world.run(run).lease_owner == name


@proves("R-SESS-2", part="runs of a dead worker go on side by side")
@proves("D3", part="a backlog goes on side by side")
@pytest.mark.parametrize("dead", [True, False], ids=["of a dead worker", "that nobody was told of"])
def test_runs_that_stand_still_are_driven_side_by_side(
    world: World, superuser: psycopg.Connection, settings: Settings, dead: bool
) -> None:
    clock = Clock(superuser)
    clock.park_the_rest()
    settings.INTERLOCK_SWEEP_SECONDS, settings.INTERLOCK_WORKER_THREADS = 0.2, FOUR
    runs = [world.submit("tool-loop", "How much is (12 + 30) * 2?") for _ in range(FOUR)]
    for run in runs if dead else ():
        assert claim_lease(world.id, run, "elsewhere:4711:0a1b2c3d") is not None
        clock.lease_dies(run)
    together = Barrier(FOUR)

    def meet(point: str) -> None:
        if point == "claimed" and not together.broken:
            together.wait(PATIENCE_SECONDS / 2)

    worker = replace(fresh_worker(), fault=meet)
    with sweeping(Sweeper(worker, FairScheduler(worker, threads=FOUR))):
        wait_until_ended(world, runs)
        assert not together.broken, "they were driven one after another"


def test_the_sweep_drives_no_run_twice_and_no_more_than_threads_are_free() -> None:
    hands, held = SweepThreads(FOUR), Barrier(3)
    first, second, third = (UUID(int=number) for number in range(3))

    def drive() -> None:
        held.wait(PATIENCE_SECONDS)

    def nothing() -> None:
        """Nothing more."""

    assert hands.take(first, drive, nothing, busy=2)
    assert not hands.take(first, drive, nothing, busy=2)
    assert hands.take(second, drive, nothing, busy=2)
    assert not hands.take(third, drive, nothing, busy=2)
    held.wait(PATIENCE_SECONDS)
    hands.close()


def test_one_run_is_always_driven_by_the_sweep_though_all_threads_are_in_use() -> None:
    hands, done = SweepThreads(FOUR), list[str]()
    assert hands.take(UUID(int=1), lambda: done.append("driven"), lambda: done.append("then"), busy=FOUR)
    hands.close()
    assert done == ["driven", "then"]


@proves("R-SESS-13", part="a message that a stopping worker took is put back")
def test_a_message_taken_by_a_worker_that_is_to_stop_is_put_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    stopping = fresh_worker()
    stopping.stopping = True
    process = Process(
        worker=stopping,
        heartbeat=Heartbeat(),
        sweep=Sweeper(stopping),
        turns=FairScheduler(stopping, threads=1),
    )
    monkeypatch.setattr(jobs, "this_process", lambda: process)
    for job, said in ((jobs.advance_run, {"run_id": str(run)}), (jobs.take_turn, {"tenant": str(world.id)})):
        with pytest.raises(Reject) as back:
            job(**said)
        assert back.value.args[1], "it is to be queued again"
    assert world.run(run).status == "queued"


FIRST_TURN = """
import sys, django
django.setup()
import orchestrator.jobs
from uuid import UUID
from orchestrator.worker.process import this_process
this_process().warm_up()
before = set(sys.modules)
this_process().worker.advance(UUID(sys.argv[1]))
print(*sorted(name for name in set(sys.modules) - before if name.startswith("orchestrator")))
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
@proves("R-SESS-13", part="a fresh worker is warm before it is ready")
def test_the_first_turn_of_a_warm_worker_loads_nothing_more(world: World, servers: TestServers) -> None:
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    quiet = {"DJANGO_SETTINGS_MODULE": "config.settings", "INTERLOCK_LOG_LEVEL": "ERROR"}
    environment = servers.environment() | quiet | {"PATH": os.environ["PATH"]}
    argv = [sys.executable, "-c", FIRST_TURN, str(run)]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert world.run(run).terminal_code == "SUCCESS"
    assert done.stdout.split() == []

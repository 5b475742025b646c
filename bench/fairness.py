"""How long another tenant's run waits for its first step while one tenant floods (R-BUDGET-11).

`python -m bench fairness` starts a worker process as `manage.py up` does and lets a quiet tenant submit one
task after another, each when the one before has ended: alone, and then beside another tenant's flood of 2 000
tasks, all admitted before. Printed is the time from a task's admission to its run's first commit, in the
database's time, and how much of the flood was still to do; judged is that the median is at most twice the
usual one. The scripted model answers at once, so the flood uses all of the worker's processor: the worst
neighbour there is.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from time import monotonic, sleep
from typing import NamedTuple
from uuid import UUID

import psycopg

from bench.live import _valkey
from bench.servers import ROOT, unpin
from bench.thresholds import judge
from budgets.actions import change_rates
from budgets.core.rates import Rates
from config.celery import app
from config.devstack import process_specs
from orchestrator.core.common.goal import Goal
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.runs.actions.submit import Submission, Submitter, submit_task
from orchestrator.runs.models.run import Run
from tenancy.actions import add_member, add_person, create_tenant, principal_of
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction

FLOOD, SAMPLES = 2_000, 40
THREADS = 8
BOUND = 2.0
PATIENCE_SECONDS, PAUSE_SECONDS = 60.0, 0.05


class Guest(NamedTuple):
    """A tenant and who submits in it."""

    tenant: UUID
    submitter: Submitter


def measure(superuser: psycopg.Connection) -> None:
    """Alone, then beside the flood; print both and their ratio."""
    unpin(superuser)
    noisy, quiet = _guest("noisy"), _guest("quiet")
    with _valkey() as url:
        app.conf.update(broker_url=url.replace("unix://", "redis+socket://", 1))
        with _worker(url):
            _delays(superuser, quiet, 5)
            alone = _delays(superuser, quiet, SAMPLES)
        for _ in range(FLOOD):
            _submit(noisy)
        with _worker(url):
            _wait_for_the_flood(superuser, noisy)
            beside = _delays(superuser, quiet, SAMPLES)
            left = _queued(superuser, noisy)
    print(f"{FLOOD:,} tasks of one tenant, {left:,} of them still queued after the last sample")
    print(f"  {'task to first step, ms':26}{'p50':>8}{'p95':>8}")
    for name, values in (("alone", alone), ("beside the flood", beside)):
        print(f"  {name:26}{median(values):8.1f}{quantiles(values, n=100)[94]:8.1f}")
    ratio = median(beside) / median(alone)
    judge(f"beside the flood a run waits {ratio:.2f} of its usual delay, bound {BOUND}", held=ratio <= BOUND)
    judge(f"the flood was still there at the last sample: {left:,} tasks queued", held=left > 0)


def _guest(name: str) -> Guest:
    house = create_tenant(f"bench-{name}", name)
    person = add_person(f"{name}@bench.example", name, None)
    add_member(house.id, person, Role.OPERATOR)
    seed_tenant(house.id)
    change_rates(house.id, Rates(), by=None, reason="a bench")
    with tenant_transaction(house.id):
        principal = principal_of(house.id, person)
    return Guest(house.id, Submitter(principal=principal.id, owner=person.id, scopes=("submit", "read")))


def _submit(guest: Guest) -> UUID:
    asked = Submission(workflow="tool-loop", goal=Goal(objective="How much is (12 + 30) * 2?"))
    return submit_task(guest.tenant, guest.submitter, asked).run


def _delays(superuser: psycopg.Connection, guest: Guest, samples: int) -> list[float]:
    """Milliseconds from admission to first commit of one task after another. A tenant that submitted before
    its last run had ended would have itself for a neighbour, and beside a flood more often."""
    found: list[float] = []
    query = """
    SELECT extract(epoch FROM started_at - created_at) * 1000 FROM orchestrator_run
     WHERE id = %s AND finished_at IS NOT NULL"""
    for _ in range(samples):
        run, until = _submit(guest), monotonic() + PATIENCE_SECONDS
        while (row := superuser.execute(query, (run,)).fetchone()) is None:
            assert monotonic() < until, "the quiet tenant's run does not end"
            sleep(PAUSE_SECONDS / 10)
        found.append(float(row[0]))
        sleep(PAUSE_SECONDS)
    return found


def _queued(superuser: psycopg.Connection, guest: Guest) -> int:
    query = "SELECT count(*) FROM orchestrator_run WHERE tenant_id = %s AND status = 'queued'"
    row = superuser.execute(query, (guest.tenant,)).fetchone()
    return int(row[0]) if row else 0


def _wait_for_the_flood(superuser: psycopg.Connection, guest: Guest) -> None:
    until = monotonic() + PATIENCE_SECONDS
    while _queued(superuser, guest) > FLOOD - 2 * THREADS:
        assert monotonic() < until, "the worker does not begin"
        sleep(0.05)
    with tenant_transaction(guest.tenant):
        assert Run.objects.filter(status="in_progress").exists() or Run.objects.exists()


@contextmanager
def _worker(redis_url: str) -> Iterator[None]:
    """A worker process, ready; ended with what it holds given back."""
    told = os.environ | {
        "REDIS_URL": redis_url, "INTERLOCK_POOL": "1", "INTERLOCK_WORKER_THREADS": str(THREADS),
    }  # fmt: skip
    part = process_specs.build_worker_part(Path(told["INTERLOCK_DATA_DIR"]), told, threads=THREADS, drain=20)
    part.before()
    command = part.command()
    process = subprocess.Popen(
        command.argv, cwd=ROOT, env=command.environment, stdout=sys.stderr, stderr=subprocess.STDOUT
    )
    try:
        until = monotonic() + PATIENCE_SECONDS
        while not part.ready():
            assert process.poll() is None, "the worker ended"
            assert monotonic() < until, "the worker does not start"
            sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(60)

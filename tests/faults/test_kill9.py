"""Worker processes that are killed with SIGKILL while the company holds their calls; another one finishes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from signal import SIGKILL
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from orchestrator.runs.models.run import Run
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.http_server import Reply, Seen
from tests.factories.foreign import Obedient, called, foreign, onwards, to_the_end
from tests.factories.world import World, company_at, make_world
from tests.journeys.interleaving.clock import DEADLINES
from tests.proves import proves
from tests.servers import ROOT, TestServers

pytestmark = pytest.mark.slow

ASKED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "orders.lookup": ("orders", {"order_id": "A-1001"}, ["repeated"]),
    "payments.refund": (
        "payments",
        {"order_id": "A-1001", "amount": "10.00", "currency": "USD", "reason": "late"},
        ["repeated"],
    ),
    "mail.send": ("mail", {"to": "a@b.example", "subject": "S", "text": "T", "reference": "r"}, ["found"]),
    "ledger.post": ("ledger", {"account": "refunds", "amount": "-10.00", "memo": ""}, ["in_doubt"]),
}
WORKER = """
import sys, time, django
django.setup()
from uuid import UUID
import orchestrator.llm.gateways.providers.http_provider
from orchestrator.worker.heartbeat import Heartbeat
from orchestrator.worker.process import make_worker
Heartbeat().start()
worker = make_worker()
sys.stdin.readline()
while True:
    worker.advance(UUID(sys.argv[1]))
    time.sleep(0.1)
"""
LEASE_SECONDS = 3
# Several interpreters start at once, on whatever else the machine has to do.
PATIENCE_SECONDS = 240.0


class Told(Obedient):
    """A model that asks for the tool that the task names."""

    def answer(self, seen: Seen) -> Reply:
        """Choose by the conversation's words, then as ever."""
        words = str((seen.document or {}).get("messages"))
        name = next(name for name in ASKED if f"Use {name} now" in words)
        self._asked = (called(name, **ASKED[name][1]),)
        return super().answer(seen)


@contextmanager
def process(servers: TestServers, run: UUID, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker on the same database that takes its run when told, and again after each wait of the run's own:
    a call that a busy machine does not send in time makes it wait. It is killed without a word at the end."""
    environment = servers.environment() | {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "INTERLOCK_LEASE_SECONDS": str(LEASE_SECONDS),
        # On a busy machine the first call of a model outlasts a slice, and no queue would bring the run back.
        "INTERLOCK_SLICE_SECONDS": "600",
        **more,
    }
    argv = [sys.executable, "-c", WORKER, str(run)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=ROOT, env=environment)
    assert child.stdin is not None
    try:
        yield child
    finally:
        child.kill()
        child.stdin.close()
        assert child.wait(10) == -SIGKILL, "it ended before it was killed"


def told(worker: subprocess.Popen[bytes]) -> None:
    """Let a worker take its run."""
    assert worker.stdin is not None
    worker.stdin.write(b"\n")
    worker.stdin.flush()


@pytest.mark.timeout(600)
@proves("R-SESS-8", part="kill -9")
@proves("R-TOOL-9", part="kill -9")
def test_killed_processes_leave_each_effect_once_or_in_doubt(
    house: House, company: Company, superuser: psycopg.Connection, servers: TestServers, settings: Settings
) -> None:
    with company_at(company.url), foreign(settings, Told()) as model:
        world = make_world(house)
        runs = {
            name: world.submit("tool-loop", f"Use {name} now for a@b.example or the account refunds.")
            for name in ASKED
        }
        for name, (service, _, _) in ASKED.items():
            if name != "orders.lookup":
                onwards(world, runs[name])
                (asked,) = world.open_requests(runs[name])
                world.decide(asked, world.people.approver)
            company.faults(service, "hang" if name == "orders.lookup" else "commit_then_hang", times=1)
        there = {"INTERLOCK_DEMO_URL": company.url, "OPENAI_BASE_URL": model.url}
        workers = {name: process(servers, run, **there) for name, run in runs.items()}
        with ExitStack() as processes:
            started = {name: processes.enter_context(worker) for name, worker in workers.items()}
            for name, run in runs.items():
                told(started[name])
                company.wait_until_held(ASKED[name][0], patience=PATIENCE_SECONDS)
                assert world.run(run).lease_owner
                # At once: a call that waits for all the others to be held might come to its own end.
                started[name].kill()
        sleep_until_dead(world, runs)
        with superuser.transaction():
            superuser.execute("SET LOCAL session_replication_role = replica")
            for run in runs.values():
                superuser.execute(DEADLINES, [run])
        for name, run in runs.items():
            found = to_the_end(world, run, "happened")
            assert found.terminal_code == "SUCCESS", (name, found.reason)
            said = [one["resolution"] for one in world.said(run, "call_recovered")]
            assert said == ASKED[name][2], name
            world.sound(run)
    assert {effect["service"] for effect in company.effects()} == {"payments", "mail", "ledger"}
    assert len(company.effects()) == 3


def sleep_until_dead(world: World, runs: dict[str, UUID]) -> None:
    """Nobody takes a run while its lease lives; after that anybody may."""
    until = monotonic() + PATIENCE_SECONDS
    with tenant_transaction(world.id):
        while Run.objects.filter(id__in=runs.values(), lease_until__gt=Now()).exists():
            assert monotonic() < until
            sleep(0.1)

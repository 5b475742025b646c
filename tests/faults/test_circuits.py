"""One probe across processes, and a prober that is killed (R-BUDGET-13)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings

from orchestrator.core.tools.circuit_breaker import BlockedCircuit, Ticket
from orchestrator.outbound.actions import TenantCircuits
from tests.conftest import House
from tests.proves import proves
from tests.servers import ROOT, TestServers

TOOL = "orders.lookup"
PROCESSES = 3
# Asks for the probe when told to, says what it got, and then waits to be killed.
ASKS = """
import sys, uuid, django
django.setup()
from orchestrator.outbound.actions import TenantCircuits
board = TenantCircuits(uuid.UUID(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
got = board.admit("tool", sys.argv[2], timeout_ms=60_000)
print("probe" if getattr(got, "probe", False) else "blocked", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def askers(house: House, servers: TestServers) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ready to ask, each with a connection of its own."""
    environment = {
        **os.environ, **servers.environment(), "INTERLOCK_SECRET_KEY": settings.SECRET_KEY,
        "DJANGO_SETTINGS_MODULE": "config.settings", "INTERLOCK_LOG_LEVEL": "ERROR",
    }  # fmt: skip
    argv = (sys.executable, "-c", ASKS, str(house.tenant.id), TOOL)
    found = [
        subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )
        for _ in range(PROCESSES)
    ]
    try:
        assert [heard(process) for process in found] == ["ready"] * PROCESSES
        yield found
    finally:
        for process in found:
            process.kill()
            process.communicate()


def heard(process: subprocess.Popen[str]) -> str:
    """The next of its words that is one of ours."""
    assert process.stdout is not None
    return next(line.strip() for line in process.stdout if line.strip() in ("ready", "probe", "blocked"))


def tell(process: subprocess.Popen[str]) -> None:
    """Let it ask."""
    assert process.stdin is not None
    process.stdin.write("now\n")
    process.stdin.flush()


def over(superuser: psycopg.Connection, house: House) -> None:
    """The cooldown, or the lease, is over now."""
    superuser.execute(
        "UPDATE orchestrator_circuitrow SET until = clock_timestamp() WHERE tenant_id = %s",
        (house.tenant.id,),
    )


@proves("R-BUDGET-13", part="one probe across processes")
def test_one_process_of_many_gets_the_probe_and_its_death_frees_it(
    house: House, superuser: psycopg.Connection, askers: list[subprocess.Popen[str]]
) -> None:
    TenantCircuits(house.tenant.id).trip("tool", TOOL, "timeout")
    over(superuser, house)
    for process in askers:
        tell(process)
    words = [heard(process) for process in askers]
    assert sorted(words) == ["blocked"] * (PROCESSES - 1) + ["probe"]
    prober = askers[words.index("probe")]
    prober.kill()
    prober.wait()
    assert isinstance(TenantCircuits(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000), BlockedCircuit)
    over(superuser, house)
    next_one = TenantCircuits(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000)
    assert isinstance(next_one, Ticket)
    assert next_one.probe

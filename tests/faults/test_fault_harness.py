"""The fault harness in its short form: it works, and notices a service that does an effect twice or never."""

import os
import subprocess
import sys

import pytest

from bench.isolated_env import bare
from tests.proves import proves
from tests.servers import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SHORT = ("--seed", "7", "--runs", "6", "--effects", "2", "--load-only")


def harness(*more: str) -> tuple[int, str]:
    """Run it; its status and what it printed."""
    argv = [sys.executable, "-m", "bench.faults", *SHORT, *more]
    done = subprocess.run(
        argv, cwd=ROOT, env=bare(os.environ), capture_output=True, text=True, check=False, timeout=540
    )
    return done.returncode, done.stdout + done.stderr


@proves("R-SESS-1", part="processes killed under load")
@proves("R-TOOL-9", part="effects counted at the services")
def test_effects_under_a_killed_worker_and_a_killed_database_happen_once() -> None:
    status, said = harness("--fault", "kill -9 worker", "--fault", "kill -9 PostgreSQL")
    assert status == 0, said
    assert "6 runs, 12 effects at the services" in said
    for verdict in ("lost: 0", "doubled: 0", "stuck: 0", "failed: 0", "verified: 6 of 6"):
        assert verdict in said, said


@pytest.mark.parametrize(("sabotage", "verdict"), [("twice", "FAIL  doubled: "), ("never", "FAIL  lost: 1")])
def test_a_service_that_does_an_effect_wrongly_fails_the_harness(sabotage: str, verdict: str) -> None:
    status, said = harness("--fault", "FLUSHALL", "--sabotage", sabotage)
    assert status == 1, said
    assert verdict in said, said

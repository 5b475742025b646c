"""A model's server dies under the application as `make up` starts it, and comes back (R-TOOL-22)."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import httpx2
import pytest

from bench.faults.processes import Database, RunningApplication, running
from bench.servers import parent
from tenancy.core.demo_users import PASSWORD
from tests.doubles.model_process import ModelProcess
from tests.proves import proves
from tests.servers import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COOLDOWN_SECONDS = 6
# From the end of a cooldown to the probe: one look of the sweep, and the machine's own time.
LATE_SECONDS = 4.0
RUNS = 6
PATIENCE_SECONDS = 120.0
CIRCUIT = """
SELECT changes, state, extract(epoch FROM until)::float, extract(epoch FROM clock_timestamp())::float
  FROM orchestrator_circuitrow WHERE kind = 'model'"""


@pytest.fixture
def model() -> Iterator[ModelProcess]:
    """A model's server in a process of its own."""
    found = ModelProcess()
    found.start()
    yield found
    found.kill()


@pytest.fixture
def application(model: ModelProcess) -> Iterator[RunningApplication]:
    """The application as `make up` starts it, with that model."""
    settings = {
        "OPENAI_BASE_URL": model.url, "INTERLOCK_MODEL_PRICE": "0",
        "INTERLOCK_CIRCUIT_COOLDOWN_SECONDS": str(COOLDOWN_SECONDS),
    }  # fmt: skip
    with TemporaryDirectory(prefix="interlock-away-", dir=parent()) as name:
        Path(name).chmod(0o711)
        with running(Path(name) / "data", settings) as found:
            yield found


class Client:
    """A program with a key, and a person who is signed in."""

    def __init__(self, application: RunningApplication) -> None:
        argv = [sys.executable, "manage.py", "key", "create", "--tenant", "demo", "--role", "client"]
        environment = {**application.environment, "PATH": os.environ["PATH"]}
        made = subprocess.run(argv, cwd=ROOT, env=environment, text=True, capture_output=True, check=True)
        self._key = made.stdout.strip()
        self._http = httpx2.Client(base_url=application.url, trust_env=False, timeout=30)
        self._person = httpx2.Client(
            base_url=application.url, trust_env=False, timeout=30, follow_redirects=True
        )

    def submit(self, number: int) -> str:
        """Submit a task; its run."""
        body = {"workflow": "tool-loop", "goal": {"objective": f"Say {number}."}}
        headers = {"Authorization": f"Bearer {self._key}", "Idempotency-Key": f"away-{number}"}
        answer = self._http.post("/api/v1/tasks", json=body, headers=headers)
        return str(answer.raise_for_status().json()["run"]["id"])

    def run(self, run: str) -> dict[str, Any]:
        """The run by the API."""
        headers = {"Authorization": f"Bearer {self._key}"}
        found: dict[str, Any] = (
            self._http.get(f"/api/v1/runs/{run}", headers=headers).raise_for_status().json()
        )
        return found

    def page(self, run: str) -> str:
        """The run's page, as its text."""
        asked = self._person.get(f"/runs/{run}")
        if "csrfmiddlewaretoken" in asked.text and 'name="password"' in asked.text:
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', asked.text)
            assert token is not None
            form = {"csrfmiddlewaretoken": token[1], "login": "operator@demo.example", "password": PASSWORD}
            self._person.post(str(asked.url), data=form, headers={"Referer": str(asked.url)})
            asked = self._person.get(f"/runs/{run}")
        return re.sub(r"<[^>]+>", " ", asked.raise_for_status().text)

    def close(self) -> None:
        """Close both."""
        self._http.close()
        self._person.close()


@pytest.fixture
def client(application: RunningApplication) -> Iterator[Client]:
    """Both, at the running application."""
    found = Client(application)
    yield found
    found.close()


@pytest.fixture
def database(application: RunningApplication) -> Iterator[Database]:
    """A look at its tables."""
    found = Database(application.data)
    yield found
    found.close()


def wait_for(condition: Callable[[], bool], complaint: str) -> None:
    """Until it holds."""
    until = monotonic() + PATIENCE_SECONDS
    while not condition():
        assert monotonic() < until, complaint
        sleep(0.1)


def circuit(database: Database) -> tuple[int, str, float, float]:
    """The circuit's number of changes, its state, the end of its cooldown, and the database's time."""
    rows = database.rows(CIRCUIT)
    if not rows:
        return (0, "closed", 0.0, 0.0)
    changes, state, until, now = rows[0]
    return int(str(changes)), str(state), float(str(until or 0)), float(str(now))


def lateness_of_the_next_probe(database: Database) -> float:
    """Wait until the open circuit is tried once more; seconds from the end of its cooldown to that."""
    wait_for(lambda: circuit(database)[1] == "open", "the circuit does not open")
    before, _, until, _ = circuit(database)
    wait_for(lambda: circuit(database)[0] > before, "nobody tries the model")
    return circuit(database)[3] - until


@proves("R-TOOL-22", part="over processes: an outage is waited out, and every run ends with its result")
@proves("R-BUDGET-13", part="over processes: one probe at a time, soon after each cooldown")
def test_runs_wait_for_a_model_that_died_and_all_end_well_once_it_is_back(
    application: RunningApplication, model: ModelProcess, client: Client, database: Database
) -> None:
    model.kill()
    runs = [client.submit(number) for number in range(RUNS)]
    wait_for(lambda: all(client.run(run)["waiting_for_model"] for run in runs), "the runs do not wait")
    wait_for(lambda: circuit(database)[1] == "open", "the circuit does not open")
    held = "SELECT count(*)::int FROM orchestrator_run WHERE lease_owner IS NOT NULL AND finished_at IS NULL"
    wait_for(lambda: database.rows(held) == [(0,)], "a waiting run keeps a worker")
    waiting = client.run(runs[0])["waiting_for_model"]
    assert datetime.fromisoformat(waiting["since"]).tzinfo is not None
    assert "waiting for the model since" in client.page(runs[0])

    for _ in range(3):
        before, lateness = circuit(database)[0], lateness_of_the_next_probe(database)
        assert lateness < LATE_SECONDS, f"the probe came {lateness:.1f} s after the cooldown"
        wait_for(lambda: circuit(database)[1] == "open", "the probe does not fail")
        assert circuit(database)[0] == before + 2, "one run was let out, and its failure opened the circuit"

    model.start()
    back = monotonic()
    wait_for(lambda: all(client.run(run)["terminal_code"] for run in runs), "the runs do not end")
    assert monotonic() - back < COOLDOWN_SECONDS + LATE_SECONDS + 10
    assert [client.run(run)["terminal_code"] for run in runs] == ["SUCCESS"] * RUNS
    assert application.is_whole()

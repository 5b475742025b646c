"""The demo company as a real process of this test session, with the levers a test pulls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from config.devstack.child_process import Command

_ROOT = Path(__file__).parents[2]


class Company:
    """A company in `folder`; started on any free port and, after a kill, on the same one again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.http = httpx2.Client(timeout=10, trust_env=False)

    @property
    def url(self) -> str:
        """Its origin, such as `http://127.0.0.1:41234`, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process and wait until it listens. Raises RuntimeError when it ends instead."""
        argv = (sys.executable, "-m", "demo", "--port", str(self._port), "--data", str(self._folder))
        command = Command(argv=argv, environment=dict(os.environ), folder=_ROOT)
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, **command.popen())
        assert self._process.stdout is not None
        said = self._process.stdout.readline().decode()
        if "http://" not in said:
            self.kill()
            message = f"the demo company did not open: {said!r}"
            raise RuntimeError(message)
        self._port = int(said.partition(",")[0].rpartition(":")[2])

    def kill(self) -> None:
        """End the process as a power cut would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the process politely (SIGTERM)."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def restart(self) -> None:
        """Kill and start again, on the same port and data."""
        self.kill()
        self.start()

    def get(self, path: str, **query: str | int) -> Any:
        """The JSON of a GET that must succeed."""
        return self.http.get(self.url + path, params=query).raise_for_status().json()

    def reset(self) -> None:
        """The first day again: orders, books, log and faults."""
        self.http.post(self.url + "/reset").raise_for_status()

    def faults(
        self,
        service: str,
        mode: str,
        *,
        seconds: float | None = None,
        times: int | None = None,
        on: str | None = None,
    ) -> None:
        """Tell a service how to misbehave (`none` ends it); see demo/README.md."""
        fault = {"service": service, "mode": mode, "seconds": seconds, "times": times, "on": on}
        self.http.put(self.url + "/faults", json=fault).raise_for_status()

    def effects(self, service: str | None = None, since: int = 0) -> list[dict[str, Any]]:
        """The effect log, oldest first: `id, at, service, action, key, reference, body`."""
        found: list[dict[str, Any]] = self.get("/effects", **_asked(service, since))["effects"]
        return found

    def requests(self, service: str | None = None, since: int = 0) -> list[dict[str, Any]]:
        """The requests since the last start or reset: `id, at, service, method, path, key, status`."""
        found: list[dict[str, Any]] = self.get("/requests", **_asked(service, since))["requests"]
        return found

    def wait_until_held(self, service: str, count: int = 1, patience: float = 10.0) -> None:
        """Wait until `count` requests of a service hang in a fault. Raises TimeoutError."""
        deadline = time.monotonic() + patience
        while self.get("/faults")["held"].get(service, 0) < count:
            if time.monotonic() > deadline:
                message = f"{service}: no {count} held requests after {patience} s"
                raise TimeoutError(message)
            time.sleep(0.01)


def _asked(service: str | None, since: int) -> dict[str, str | int]:
    return {"since": since} | ({"service": service} if service else {})


@pytest.fixture(scope="session")
def company_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """The process, one for each test process."""
    company = Company(tmp_path_factory.mktemp("company"))
    company.start()
    yield company
    company.kill()
    company.http.close()


@pytest.fixture
def company(company_process: Company) -> Company:
    """The demo company on its first day: running, without faults, with an empty effect log."""
    if not company_process.running:
        company_process.restart()
    company_process.reset()
    return company_process

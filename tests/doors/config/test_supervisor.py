"""`manage.py up` for real: its own data folder, a free port, real children."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from config.devstack.child_process import Account, is_process_alive, socket_folder
from config.devstack.process_specs import free_port
from tests.proves import proves
from tests.servers import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")
# Longer than the period of each schedule that runs more than once a minute.
IDLE_SECONDS = 6.0


class Up:
    """A running `manage.py up`."""

    def __init__(self, data: Path, port: int, **settings: str) -> None:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {"INTERLOCK_DATA_DIR": str(data), "INTERLOCK_PORT": str(port), **settings}
        self.data, self.port = data, port
        self.lines: list[str] = []
        self._fresh: queue.Queue[str] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                self._fresh.put(line)

    def wait_for(self, words: str, patience: float = 90) -> None:
        """Until the log has a new line with these words."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                if words in self._fresh.get(timeout=0.2):
                    return
            except queue.Empty:
                if self.process.poll() is not None and not self._reader.is_alive():
                    break
        pytest.fail(f"no line with {words!r} in:\n" + "\n".join(self.lines))

    def children(self) -> dict[int, str]:
        """Process ids and command lines of the direct children."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {int(pid): Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in listed}

    def child(self, words: str) -> int:
        """The process id of the child with these words in its command line."""
        (pid,) = (pid for pid, line in self.children().items() if words in line)
        return pid

    def get(self, path: str) -> Any:
        """GET of a JSON document."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
            return json.load(response)

    def end(self) -> int:
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self._reader.join(10)
        return status


@contextmanager
def up(data: Path, port: int, **settings: str) -> Iterator[Up]:
    """A house that is ended whatever happens."""
    house = Up(data, port, **settings)
    try:
        yield house
    finally:
        if house.process.poll() is None:
            house.end()


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder under the checkout's own: `nobody` cannot walk into pytest's."""
    place = ROOT / ".data" / f"up-{os.getpid()}-{time.monotonic_ns()}"
    yield place
    shutil.rmtree(socket_folder(place, Account.for_servers()), ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)


def _owner(data: Path) -> psycopg.Connection:
    noted = json.loads((data / "servers.json").read_text())
    return psycopg.connect(noted["DATABASE_OWNER_URL"], autocommit=True)


def _a_worker_listens(data: Path) -> bool:
    """Whether some client of the broker waits for a message again, within half a minute."""
    noted = json.loads((data / "servers.json").read_text())
    deadline = time.monotonic() + 30
    with redis.Redis.from_url(noted["REDIS_URL"]) as broker:
        while time.monotonic() < deadline:
            if any(client["cmd"] == "brpop" for client in broker.client_list()):
                return True
            time.sleep(0.2)
    return False


@proves("R-API-10", part="embedded start")
@proves("R-TOOL-23", part="no key")
def test_up_serves_and_heals_and_ends_and_keeps_its_data(data: Path) -> None:
    with up(data, free_port()) as house:
        house.wait_for("Models: none is configured")
        house.wait_for("Interlock is up at")
        house.wait_for("operator@demo.example")
        house.wait_for("…@harbor.example")
        time.sleep(IDLE_SECONDS)
        assert [line for line in house.lines if line][-1].endswith("…@harbor.example"), house.lines
        before = house.lines[: house.lines.index("Models: none is configured, so scripted scenarios play:")]
        assert not any("@" in line or "Applying tenancy" in line for line in before)
        assert len(before) <= 30, before
        assert house.get("/readyz") == {"status": "ready", "checks": {"database": True, "broker": True}}
        assert oct((data / "servers.json").stat().st_mode)[-3:] == "600"
        assert (data / "format").read_text() == "1\n"
        with _owner(data) as owner:
            assert owner.execute("SELECT number FROM config_data_format").fetchone() == (1,)
            owner.execute("CREATE TABLE remembered AS SELECT 42 AS answer")

        for part, words in (
            ("web", "config.devstack.serve"),
            ("valkey", "valkey-server"),
            ("postgres", "postgres -D"),
        ):
            os.kill(house.child(words), signal.SIGKILL)
            house.wait_for(f"{part} ended with signal SIGKILL; it is started again")
            house.wait_for(f"{part} is ready again")
        assert house.get("/readyz")["status"] == "ready"
        assert _a_worker_listens(data)

        children = house.children()
        assert house.end() == 0
        assert [line for pid, line in children.items() if is_process_alive(pid)] == []

    with up(data, free_port()) as again:
        again.wait_for("Interlock is up at")
        with _owner(data) as owner:
            assert owner.execute("SELECT answer FROM remembered").fetchone() == (42,)
        with up(data, free_port()) as second:
            second.wait_for("already up on")
            assert second.process.wait(20) == 1
        children = again.children()
        again.process.kill()
        again.process.wait(20)
        deadline = time.monotonic() + 40
        while any(is_process_alive(pid) for pid in children) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert [line for pid, line in children.items() if is_process_alive(pid)] == []


@proves("R-API-10", part="a start right after a kill")
@pytest.mark.parametrize("children_too", [True, False], ids=["everything", "the supervisor alone"])
def test_up_starts_right_after_a_kill(data: Path, children_too: bool) -> None:
    port = free_port()
    with up(data, port) as house:
        house.wait_for("Interlock is up at")
        children = house.children() if children_too else {}
        for pid in (house.process.pid, *children):
            os.kill(pid, signal.SIGKILL)
        house.process.wait(20)
    with up(data, port) as again:
        again.wait_for("Interlock is up at")
        assert again.get("/readyz")["status"] == "ready"
        assert again.end() == 0
        assert (data / "supervisor.lock").read_text() == ""


def test_a_port_in_use_is_said(data: Path) -> None:
    with a_port_in_use() as port, up(data, port) as house:
        house.wait_for(f"Port {port} of 127.0.0.1 is in use")
        assert house.process.wait(20) == 1


@contextmanager
def a_port_in_use() -> Iterator[int]:
    """Somebody else on a port."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_an_unreachable_database_is_said(data: Path) -> None:
    nowhere = "postgresql://interlock_app@127.0.0.1:1/none"
    with up(data, free_port(), DATABASE_URL=nowhere) as house:
        house.wait_for("Cannot reach the database of DATABASE_URL")
        assert house.process.wait(20) == 1

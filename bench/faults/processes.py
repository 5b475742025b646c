"""The running application as its processes: started as `make up` does, found and ended by their ids."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic, sleep
from typing import Final, Literal

import psycopg

from bench.isolated_env import bare
from bench.servers import ROOT
from config.devstack import process_specs
from config.devstack.child_process import Account, is_process_alive, socket_folder
from config.devstack.embedded import EmbeddedPostgres

PartName = Literal["web", "worker", "beat", "valkey", "postgres", "demo"]
# What the command line of each child holds, and of no other.
WORDS: Final[Mapping[PartName, str]] = {
    "web": "config.devstack.serve", "worker": "config.celery -q worker", "beat": "config.celery -q beat",
    "valkey": "valkey-server", "postgres": "postgres -D", "demo": "-m demo",
}  # fmt: skip
START_SECONDS: Final = 180.0
DRAIN_SECONDS: Final = 20.0
UP: Final = "Interlock is up at"


class RunningApplication:
    """`manage.py up` in a data folder of its own, on a port of its own."""

    def __init__(self, data: Path, settings: Mapping[str, str]) -> None:
        self.data, self.port = data, process_specs.free_port()
        self.environment = bare(os.environ) | {
            "INTERLOCK_DATA_DIR": str(data), "INTERLOCK_PORT": str(self.port), **settings
        }  # fmt: skip
        self.lines: list[str] = []
        self._fresh: Queue[str] = Queue()
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """The origin of the web server."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start everything and wait until it says that it is up. Raises RuntimeError."""
        self._fresh = Queue()
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "up"], cwd=ROOT, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        Thread(target=self._read, args=(self._process, self._fresh), daemon=True).start()
        self._wait_until_up(self._process)

    def _read(self, process: "subprocess.Popen[str]", fresh: "Queue[str]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                fresh.put(line)

    def _wait_until_up(self, process: "subprocess.Popen[str]") -> None:
        until = monotonic() + START_SECONDS
        while monotonic() < until:
            with suppress(Empty):
                if UP in self._fresh.get(timeout=0.2):
                    return
            if process.poll() is not None:
                break
        raise RuntimeError("the application did not start:\n" + "\n".join(self.lines[-40:]))

    def children(self) -> dict[int, str]:
        """Return the ids and command lines of the supervisor's children."""
        assert self._process is not None
        found: dict[int, str] = {}
        listed = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in map(int, listed.read_text().split()):
            with suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        return found

    def pid(self, part: PartName) -> int | None:
        """Return the process id of a part, or None while it has none."""
        return next((pid for pid, line in self.children().items() if WORDS[part] in line), None)

    def send(self, part: PartName, how: signal.Signals) -> int:
        """Send a signal to a part; its process id. Raises TimeoutError where it is not there."""
        wait_until(lambda: self.pid(part) is not None, f"{part} is not there")
        pid = self.pid(part)
        assert pid is not None
        os.kill(pid, how)
        return pid

    def is_whole(self) -> bool:
        """True if every part is there, and web and worker say that they are ready."""
        parts = all(self.pid(part) is not None for part in WORDS)
        marks = all((self.data / f"{name}.ready").exists() for name in ("worker", "beat"))
        return parts and marks and process_specs.is_url_responding(f"{self.url}/readyz")

    def stop(self) -> None:
        """End everything in order, and wait until no child is left."""
        if self._process is not None and self._process.poll() is None:
            children = self.children()
            self._process.terminate()
            self._process.wait(120)
            wait_until(lambda: not any(map(is_process_alive, children)), "a process is left")

    def kill(self) -> None:
        """End the supervisor and every child at once, without a word."""
        assert self._process is not None
        for pid in (self._process.pid, *self.children()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(20)

    def noted(self) -> dict[str, str]:
        """Return the addresses that the start wrote down."""
        found: dict[str, str] = json.loads((self.data / "servers.json").read_text())
        return found


class SecondWorker:
    """A worker beside that of the supervisor, as another machine would run it."""

    def __init__(self, application: RunningApplication, *, threads: int) -> None:
        self._application, self._threads = application, threads
        self._folder = application.data / "second"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self._folder.mkdir(exist_ok=True)
        noted = self._application.noted()
        noted.pop("DATABASE_OWNER_URL", None)
        more = {"DJANGO_SETTINGS_MODULE": "config.settings", "INTERLOCK_POOL": "1", "PYTHONUNBUFFERED": "1"}
        told = self._application.environment | noted | more
        part = process_specs.build_worker_part(self._folder, told, threads=self._threads, drain=DRAIN_SECONDS)
        part.before()
        command = part.command()
        with (self._folder / "worker.log").open("ab") as log:
            self._process = subprocess.Popen(
                command.argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **command.popen()
            )
        process = self._process

        def is_ready() -> bool:
            if process.poll() is not None:
                message = f"the second worker ended with {process.returncode}; see {self._folder}"
                raise RuntimeError(message)
            return part.ready()

        wait_until(is_ready, "the second worker is not ready")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it and wait; kill it where it takes longer than the supervisor would give it."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(DRAIN_SECONDS + 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)

    def stand(self) -> None:
        """Start it where it does not run."""
        if self.pid is None:
            self.start()


@contextmanager
def running(data: Path, settings: Mapping[str, str]) -> Iterator[RunningApplication]:
    """Run the application for the length of the block, and leave no process and no socket behind."""
    application = RunningApplication(data, settings)
    try:
        application.start()
        yield application
    finally:
        application.stop()
        shutil.rmtree(socket_folder(data, Account.for_servers()), ignore_errors=True)


class Database:
    """The superuser's look at the tables; a connection that breaks is made anew."""

    def __init__(self, data: Path) -> None:
        self._server = EmbeddedPostgres(data)
        self._connection: psycopg.Connection | None = None

    def rows(self, query: str, *parameters: object) -> list[tuple[object, ...]] | None:
        """Return the rows of a query, or None while the database does not answer."""
        try:
            if self._connection is None:
                self._connection = self._server.connect("interlock")
            return self._connection.execute(query.encode(), parameters).fetchall()
        except psycopg.OperationalError:
            self.close()
            return None

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def wait_until(condition: Callable[[], bool], complaint: str, patience: float = 120.0) -> None:
    """Ask a condition ten times a second. Raises TimeoutError."""
    until = monotonic() + patience
    while not condition():
        if monotonic() > until:
            raise TimeoutError(complaint)
        sleep(0.1)

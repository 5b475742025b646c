"""A start finds what a killed one left behind: lock files whose process id lives on as somebody else's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.devstack.child_process import Account, end_stale, is_process_alive, socket_folder
from config.devstack.embedded import EmbeddedPostgres
from tests.proves import proves
from tests.servers import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def postgres() -> Iterator[EmbeddedPostgres]:
    """A server with a folder of its own, which `nobody` can walk into."""
    folder = ROOT / ".data" / f"left-{os.getpid()}-{time.monotonic_ns()}"
    server = EmbeddedPostgres(folder, durable=False, connections=20)
    try:
        yield server
        server.stop()
    finally:
        shutil.rmtree(socket_folder(folder, Account.for_servers()), ignore_errors=True)
        shutil.rmtree(server.place, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the servers' account that has nothing to do with them."""
    account = Account.for_servers()
    process = subprocess.Popen(["/bin/sleep", "600"], cwd="/", **account.popen)
    yield process
    process.kill()
    process.wait()


def kill(postgres: EmbeddedPostgres) -> int:
    """Kill a running server with SIGKILL, as everything is; its process id."""
    assert postgres.process is not None
    pid = postgres.process.pid
    postgres.process.kill()
    postgres.process.wait()
    postgres.process = None
    return pid


@proves("R-API-10", part="a killed server's process id lives on as somebody else's")
def test_postgresql_starts_though_the_process_id_in_its_lock_files_is_a_strangers(
    postgres: EmbeddedPostgres, stranger: subprocess.Popen[bytes]
) -> None:
    postgres.start()
    pid = kill(postgres)
    locks = [postgres.data / "postmaster.pid", *postgres.sockets.glob(".s.PGSQL.*.lock")]
    assert len(locks) == 2
    for lock in locks:
        first, *rest = lock.read_text().splitlines(keepends=True)
        assert first == f"{pid}\n"
        lock.write_text("".join([f"{stranger.pid}\n", *rest]))
    until = time.monotonic() + 20
    while True:
        try:
            postgres.start()
            break
        except RuntimeError:
            # Backends of the killed server may need a moment to notice; a lock file would never go.
            assert time.monotonic() < until, "PostgreSQL does not start"
            time.sleep(0.5)
    assert stranger.poll() is None


MAKES = """import sys, pathlib, config.devstack.embedded as embedded
embedded.EmbeddedPostgres(pathlib.Path(sys.argv[1])).prepare()"""


@proves("R-API-10", part="everything was killed while the cluster was being made")
def test_postgresql_starts_though_its_cluster_was_half_made_when_everything_was_killed(
    postgres: EmbeddedPostgres,
) -> None:
    argv = (sys.executable, "-c", MAKES, str(postgres.folder))
    maker = subprocess.Popen(argv, cwd=ROOT, start_new_session=True)
    until = time.monotonic() + 60
    while not any(postgres.place.glob("*/PG_VERSION")):
        assert maker.poll() is None, "it has ended"
        assert time.monotonic() < until, "no cluster is being made"
        time.sleep(0.002)
    os.killpg(maker.pid, signal.SIGKILL)
    maker.wait()
    assert not any(postgres.place.glob("*/global/pg_control"))
    postgres.start()
    assert [found.parent.name for found in postgres.place.glob("*/PG_VERSION")] == ["postgres"]


def test_a_dead_child_in_a_pid_file_is_collected(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    until = time.monotonic() + 20
    while is_process_alive(child.pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert Path(f"/proc/{child.pid}").exists(), "its status is not collected yet"
    pid_file = tmp_path / "server.pid"
    pid_file.write_text(f"{child.pid}\n")
    assert end_stale(pid_file, "no such mark", signal.SIGTERM) is False
    assert not Path(f"/proc/{child.pid}").exists()
    child.wait()


HANDLES = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit()); print(flush=True)"


def test_a_server_held_by_sigstop_is_ended(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", f"{HANDLES}; time.sleep(600)", "a-mark-of-its-own")
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as said:
        assert said.readline() == b"\n"
    try:
        child.send_signal(signal.SIGSTOP)
        pid_file = tmp_path / "server.pid"
        pid_file.write_text(f"{child.pid}\n")
        assert end_stale(pid_file, "a-mark-of-its-own", signal.SIGTERM, patience=20) is True
    finally:
        child.kill()
        child.wait()

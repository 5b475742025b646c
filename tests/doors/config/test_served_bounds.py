"""The web process as it is started: what a flood leaves in its memory and on disk, and who still gets in."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest

from config.devstack.embedded import EmbeddedValkey
from config.devstack.process_specs import ROOT, free_port, is_url_responding
from config.http_limits.body_room import MIB
from tests.doors.config.raw_client import RawClient, close_all, head
from tests.proves import proves
from tests.servers import TestServers

pytestmark = pytest.mark.slow


class WebProcess:
    """`python -m config.devstack.serve` with this test's servers behind it."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.port, self.folder = free_port(), folder
        told = {"INTERLOCK_PORT": str(self.port), "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
        self.log = folder / "web.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "config.devstack.serve"],
                env=os.environ | environment | told, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        until = time.monotonic() + 90
        while not is_url_responding(f"http://127.0.0.1:{self.port}/livez"):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until
            time.sleep(0.2)

    def memory(self) -> int:
        """The most bytes that it ever held at once."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def spooled(self) -> int:
        """Bytes in files that it holds open in its temporary folder, with and without a name."""
        total = 0
        for one in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                if str(one.readlink()).startswith(str(self.folder)) and "web.log" not in str(one.readlink()):
                    total += one.stat().st_size
            except FileNotFoundError:
                continue
        return total

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def web(servers: TestServers, valkey: EmbeddedValkey, tmp_path: Path) -> Iterator[WebProcess]:
    """A web process of this test's own."""
    found = WebProcess(servers.environment() | {"REDIS_URL": valkey.url}, tmp_path)
    try:
        yield found
    finally:
        close_all()
        found.stop()


def sign_in_page(port: int) -> int:
    """With which status the sign-in page answers."""
    client = RawClient(port)
    client.send(head("/account/login/", "Accept: text/html", "Connection: close", method="GET"))
    return client.status()


@proves("R-SEC-7", part="memory and disk of the web process")
@pytest.mark.parametrize("path", ["/api/v1/tasks", "/account/login/"])
def test_body_of_gigabytes_leaves_nothing_in_memory_or_on_disk(web: WebProcess, path: str) -> None:
    assert sign_in_page(web.port) == 200
    before = web.memory()
    clients = []
    for line in ("Content-Length: 3221225472", "Transfer-Encoding: chunked"):
        piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n" if line.startswith("T") else b"x" * 65_536
        client = RawClient(web.port)
        client.send(head(path, line, "Content-Type: application/x-www-form-urlencoded"))
        client.send_until_refused(repeat(piece, 4_800))
        clients.append(client)
        assert web.spooled() <= MIB
    assert [client.status() for client in clients] == [413, 413]
    assert [client for client in clients if client.sent > 16 * MIB] == []
    assert web.memory() - before < 24 * MIB


@proves("R-SEC-7", part="memory of the web process and long heads")
def test_head_of_a_hundred_megabytes_leaves_nothing_in_memory(web: WebProcess) -> None:
    assert sign_in_page(web.port) == 200
    before = web.memory()
    client = RawClient(web.port)
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
    client.send_until_refused(repeat(b"y" * 65_536, 1_600))
    assert client.status() in {431, 0}
    assert client.sent < 16 * MIB
    assert web.memory() - before < 8 * MIB


@proves("R-SEC-7", part="half-open connections of the web process")
def test_people_sign_in_beside_six_hundred_half_open_connections(web: WebProcess) -> None:
    clients = [RawClient(web.port) for _ in range(600)]
    for client in clients:
        client.send(b"GET / HTTP/1.1\r\nHost: loc")
    assert sign_in_page(web.port) == 200
    began = time.monotonic()
    for client in clients:
        client.read()
    # 20 seconds for a head, and a moment in which to read the refusal.
    assert time.monotonic() - began < 35
    assert sign_in_page(web.port) == 200

"""A real receiver of webhooks on loopback: keeps what it was sent to the byte, answers as it is told."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """It. `answers` are given in order, then 204; each is a status with headers."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: deque[tuple[int, dict[str, str]]] = deque()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(path=self.path, headers=headers, body=body))
                status, more = receiver.answers.popleft() if receiver.answers else (204, {})
                said = b"" if status == 204 else b"as it was told"
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def place(self) -> str:
        """Host and port, as an admin allows them."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://{self.place}/hook"

    def answer(self, status: int, **headers: str) -> None:
        """What the next request not yet answered for gets."""
        self.answers.append((status, headers))

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One."""
    found = Receiver()
    yield found
    found.close()

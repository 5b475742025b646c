"""A real HTTP server on loopback that plays a script of replies and writes down what it was asked."""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One reply, byte for byte. `cut` sends only that many bytes of the body that was announced; `dropped`
    ends the connection without a byte of an answer.

    With `parts` the body is sent bit by bit, unannounced; an event among them is waited for. `cut` then only
    leaves out the end of it.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    dropped: bool = False
    parts: tuple[bytes | threading.Event, ...] = ()

    def after(self, seconds: float) -> Reply:
        """The same reply, given after `seconds`."""
        return replace(self, delay=seconds)

    def cut_at(self, size: int) -> Reply:
        """The same reply, whose connection ends after `size` bytes of the body."""
        return replace(self, cut=size)

    def altered(self, **changes: Any) -> Reply:
        """The same JSON reply with top-level members set, or left out where the value is `ABSENT`."""
        document = json.loads(self.body) | changes
        return reply({name: value for name, value in document.items() if value is not ABSENT})


ABSENT: Any = object()


def reply(document: Any, status: int = 200, **headers: str) -> Reply:
    """A JSON reply; header names are written with underscores."""
    body = json.dumps(document, ensure_ascii=False).encode()
    return Reply(body=body, status=status, headers={n.replace("_", "-"): v for n, v in headers.items()})


def html(status: int = 200) -> Reply:
    """What a proxy in between answers."""
    body = b"<!doctype html><title>502 Bad Gateway</title><h1>502 Bad Gateway</h1>"
    return Reply(body=body, status=status, headers={"content-type": "text/html"})


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request: its path, headers (lower case) and JSON document (None where it was none)."""

    method: str
    path: str
    headers: Mapping[str, str]
    document: Any


class ScriptedServer:
    """Plays its script, one reply a request, in order. Use as a context manager.

    A request that breaks the protocol is answered by `refuse` and uses up no reply; what was wrong stands in
    `violations`. When the script is over every request gets 500 and stands in `unscripted`.
    """

    path = "/"

    def __init__(self, *script: Reply, port: int = 0) -> None:
        self._script = deque(script)
        self._lock = threading.Lock()
        self._closing, self._dead = threading.Event(), threading.Event()
        self.seen: list[Seen] = []
        self.violations: list[str] = []
        self.unscripted: list[Seen] = []
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def problems(self, seen: Seen) -> list[str]:
        """What in a request breaks the protocol."""
        raise NotImplementedError

    def refuse(self, status: int, message: str) -> Reply:
        """The protocol's own error document."""
        raise NotImplementedError

    @property
    def origin(self) -> str:
        """Such as `http://127.0.0.1:41234`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def left(self) -> int:
        """How many replies were not asked for yet."""
        return len(self._script)

    @property
    def documents(self) -> list[Json]:
        """The documents of the requests that kept to the protocol's path, oldest first."""
        return [seen.document for seen in self.seen if seen.path == self.path]

    def play(self, *script: Reply) -> None:
        """Add replies to the end of the script."""
        with self._lock:
            self._script.extend(script)

    def answer(self, seen: Seen) -> Reply:
        """The reply to one request."""
        with self._lock:
            self.seen.append(seen)
            if seen.path != self.path:
                return self.refuse(404, f"no such path: {seen.path}")
            if seen.method != "POST":
                return self.refuse(405, "this path takes POST")
            found = self.problems(seen)
            if found:
                self.violations.extend(found)
                return self.refuse(400, "; ".join(found))
            if not self._script:
                self.unscripted.append(seen)
                return self.refuse(500, "the script is over")
            return self._script.popleft()

    def die(self) -> None:
        """Go away as a killed process does: connections break, and nobody listens at the port any more."""
        self._dead.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def come_back(self) -> None:
        """Listen at the same port again."""
        port = self._server.server_address[1]
        self._dead.clear()
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def dead(self) -> bool:
        """Whether it has gone away."""
        return self._dead.is_set()

    def wait(self, seconds: float) -> None:
        """Wait before a slow reply; closing the server ends the wait."""
        self._closing.wait(seconds)

    def wait_for(self, event: threading.Event) -> None:
        """Wait until a test lets a reply go on, or closes the server."""
        while not self._closing.is_set() and not event.wait(0.02):
            pass

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        if not self.dead:
            self.die()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: ScriptedServer, port: int = 0) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is part of the play; anything else is a fault of this file."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.server.owner.dead:
            # A connection that was kept open ends with its server.
            self.close_connection = True
            return
        seen = Seen(method=self.command, path=self.path, headers=headers, document=document)
        self._give(self.server.owner.answer(seen))

    do_GET = do_POST  # noqa: N815 - the base class names it so

    def _give(self, reply: Reply) -> None:
        self.server.owner.wait(reply.delay)
        if reply.dropped or self.server.owner.dead:
            self.close_connection = True
            return
        self.send_response(reply.status)
        if reply.parts:
            self._give_parts(reply)
            return
        given = {"content-type": "application/json", "content-length": str(len(reply.body))}
        for name, value in (given | dict(reply.headers)).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body[: reply.cut])
        if reply.cut is not None:
            self.close_connection = True

    def _give_parts(self, reply: Reply) -> None:
        for name, value in ({"transfer-encoding": "chunked"} | dict(reply.headers)).items():
            self.send_header(name, value)
        self.end_headers()
        for part in reply.parts:
            if isinstance(part, threading.Event):
                self.server.owner.wait_for(part)
            elif part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if reply.cut is None:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Quiet."""


def expect(condition: bool, complaint: str) -> list[str]:
    """No complaint where the condition holds."""
    return [] if condition else [complaint]

"""A service with notes for tools without code: a real HTTP server that writes down what it was asked."""

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


class Crm:
    """A service with notes, that writes down every request."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.keys: list[str] = []
        # The bodies of the changes as they came.
        self.bodies: list[bytes] = []
        self.notes: list[dict[str, Any]] = []
        self.status = 201
        self.redirect = ""
        self.makes = True
        # What it says of a change instead of the note: a document, or bytes; `drops` cuts the connection.
        self.says: Any = None
        self.drops = False
        # What it does to the connection instead, once the change was made: given a function that writes.
        # `first_plain`: how many changes are answered well before that.
        self.first_plain = 0
        self.speaks: Callable[[Callable[[bytes], object]], None] | None = None
        # How many of the next changes are answered so; `honours`: a key makes one note, whatever comes.
        self.times = 1_000
        self.honours = False
        # What it says of a person, where a test says so; `away`: its list of notes cannot be had.
        self.reads: bytes | None = None
        self.away = False
        # What it says instead of its list of notes.
        self.lists: Any = None
        handler = type("Handler", (_Handler,), {"crm": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.place = f"127.0.0.1:{self._server.server_address[1]}"
        self.origin = f"http://{self.place}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def posts(self) -> int:
        """How many changes reached it."""
        return sum(one["body"] is not None for one in self.seen)


class _Handler(BaseHTTPRequestHandler):
    crm: "Crm"

    def do_GET(self) -> None:
        self._note(None)
        if self.crm.redirect:
            self._say(302, {}, location=self.crm.redirect)
        elif "/notes?" in self.path:
            key = self.path.partition("key=")[2]
            notes = {"notes": [note for note in self.crm.notes if note["key"] == key]}
            self._say(503 if self.crm.away else 200, notes if self.crm.lists is None else self.crm.lists)
        else:
            person = {"email": "ada@example.org", "said": self.headers["x-token"]}
            self._say(200, person if self.crm.reads is None else self.crm.reads)

    def do_POST(self) -> None:
        came = self.rfile.read(int(self.headers["content-length"]))
        self.crm.bodies.append(came)
        body = orjson.loads(came)
        self._note(body)
        note = {"id": f"n{len(self.crm.notes)}", "key": self.headers["idempotency-key"], **body}
        known = next((one for one in self.crm.notes if one["key"] == note["key"]), None)
        if self.crm.honours and known is not None:
            note = known
        elif self.crm.makes:
            self.crm.notes.append(note)
        self._tell(note)

    def _tell(self, note: Any) -> None:
        self.crm.first_plain -= 1
        if self.crm.first_plain >= 0:
            self._say(201, note)
            return
        self.crm.times -= 1
        if self.crm.times < 0:
            self._say(201, note)
        elif self.crm.drops:
            self.close_connection = True
        elif self.crm.speaks is not None:
            self.close_connection = True
            with suppress(OSError):
                self.crm.speaks(self.wfile.write)
        else:
            told = note if self.crm.status < 400 else {"error": "Something went wrong."}
            self._say(self.crm.status, told if self.crm.says is None else self.crm.says)

    def _note(self, body: Any) -> None:
        self.crm.seen.append({"path": self.path, "token": self.headers["x-token"], "body": body})
        self.crm.keys.append(self.headers["idempotency-key"] or "")

    def _say(self, status: int, document: Any, location: str = "") -> None:
        body = document if isinstance(document, bytes) else orjson.dumps(document)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if location:
            self.send_header("location", location)
        # So long before the secret that a cut would leave a part of it.
        self.send_header("x-request-id", f"{'r' * 112} {self.headers['x-token']}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Quiet."""

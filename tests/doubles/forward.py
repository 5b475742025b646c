"""A way to the suite's PostgreSQL over a port, which it does not have itself."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

COMMIT = b"COMMIT"
# Seconds: what a COMMIT is answered is there by then.
SETTLED = 0.3


class Forward:
    """A port on loopback that leads to the suite's PostgreSQL. `speaks` answers a COMMIT in its place, once
    it was made there: given what PostgreSQL said and a function that writes; the connection then ends."""

    def __init__(self, path: str, speaks: Callable[[bytes, Callable[[bytes], object]], None] | None = None):
        self._path, self.speaks = path, speaks
        self.commits = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._server.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self._path)
                committed = threading.Event()
                for copy, one, other in ((self._ask, here, there), (self._answer, there, here)):
                    threading.Thread(target=copy, args=(one, other, committed), daemon=True).start()

    def _ask(self, one: socket.socket, other: socket.socket, committed: threading.Event) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                if COMMIT in data:
                    self.commits += 1
                    if self.speaks is not None:
                        committed.set()
                other.sendall(data)
        other.close()

    def _answer(self, one: socket.socket, other: socket.socket, committed: threading.Event) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                if committed.is_set() and self.speaks is not None:
                    one.settimeout(SETTLED)
                    with suppress(TimeoutError):
                        while more := one.recv(65_536):
                            data += more
                    self.speaks(data, other.sendall)
                    # What was written is read before the connection ends.
                    other.shutdown(socket.SHUT_RDWR)
                    break
                other.sendall(data)
        other.close()

    def close(self) -> None:
        """End it."""
        self._server.close()

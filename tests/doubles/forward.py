"""A way to the suite's PostgreSQL over a port, which it does not have itself."""

import socket
import threading
from contextlib import suppress


class Forward:
    """A port on loopback that leads to the suite's PostgreSQL."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._server.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self._path)
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    @staticmethod
    def _copy(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        other.close()

    def close(self) -> None:
        """End it."""
        self._server.close()

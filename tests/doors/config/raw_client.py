"""A client that speaks HTTP by hand: it lies, dawdles and stops in the middle."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

PATIENCE = 30.0
OPENED: list[RawClient] = []


class RawClient:
    """One connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.sent = 0
        OPENED.append(self)

    def send(self, data: bytes) -> bool:
        """Send all of it; False once the server is gone."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        self.sent += len(data)
        return True

    def send_until_refused(self, pieces: Iterable[bytes]) -> None:
        """Send as long as the server takes it and says nothing."""
        for piece in pieces:
            if self.answered() or not self.send(piece):
                return

    def answered(self, patience: float = 0.0) -> bool:
        """Whether there is something to read, or an end."""
        self.socket.settimeout(max(patience, 0.001))
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            self.socket.settimeout(PATIENCE)
        return True

    def read(self) -> bytes:
        """Everything up to the end of the connection."""
        parts = []
        try:
            while part := self.socket.recv(65_536):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)

    def status(self) -> int:
        """The status of what is answered up to the end; 0 for an end without a word."""
        words = self.read().split(b" ", 2)
        return int(words[1]) if len(words) > 1 else 0

    def lasts(self) -> float:
        """Seconds until the server ends the connection."""
        began = time.monotonic()
        self.read()
        return time.monotonic() - began

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


def close_all() -> None:
    """Hang up every connection that a test left open."""
    while OPENED:
        OPENED.pop().close()


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    """A request's head."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()

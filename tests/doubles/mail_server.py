"""A mail server on loopback that keeps what it takes, and does with it as it is told."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

# Longer than anybody waits for it; the end of the server ends it.
HUNG_SECONDS = 600


class Post:
    """A mail server that keeps what it takes, and does with it as it is told."""

    def __init__(self) -> None:
        self.letters: list[tuple[Envelope, EmailMessage]] = []
        self.refuse = ""
        self.fault = ""
        self.logins: list[bytes] = []
        self.password = b"s3cret"
        self._told = b""

    async def handle_RCPT(  # noqa: N802 - the library names it so
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Take a recipient, or not."""
        if address == self.refuse:
            return "550 5.1.1 nobody of this name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take a letter; then answer, refuse, hang or hang up."""
        if self.fault == "refuse":
            return "554 5.7.1 we do not like it"
        assert isinstance(envelope.content, bytes)
        letter = message_from_bytes(envelope.content, policy=default)
        self.letters.append((envelope, letter))
        if self.fault == "hang":
            await asyncio.sleep(HUNG_SECONDS)
        if self.fault == "cut":
            assert isinstance(server.transport, asyncio.WriteTransport)
            server.transport.abort()
        if self.fault == "echo":
            return f"250 2.0.0 thank you, {self._echo()}"
        return "250 2.0.0 queued as 1"

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _how: str, data: Any
    ) -> AuthResult:
        """Know one user."""
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login)
        self._told = data.password
        known = (data.login, data.password) == (b"agent", self.password)
        if self.fault == "echo_login":
            return AuthResult(success=False, handled=False, message=f"535 5.7.8 not with {self._echo()}")
        return AuthResult(success=known, handled=False)

    def _echo(self) -> str:
        """The password that it was told, and the line that it came in."""
        line = b64encode(b"\0agent\0" + self._told)
        return f"{self._told.decode()} {line.decode()}"


@contextmanager
def mail_server() -> Iterator[tuple[Post, int]]:
    """One, with its port."""
    post = Post()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    controller = Controller(
        post, hostname="127.0.0.1", port=port, authenticator=post.authenticate, auth_require_tls=False
    )
    controller.start()
    try:
        yield post, port
    finally:
        controller.stop()

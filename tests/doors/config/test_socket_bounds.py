"""What one WebSocket may make the web process keep is bounded (R-SEC-7)."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pytest

from config.http_limits.body_room import KIB, MIB
from config.http_limits.web_protocol import BoundedSocket, ConnectionBounds
from tests.doors.config.raw_client import RawClient, close_all, head
from tests.doors.live.serving import Serving
from tests.proves import proves

PING = b"\x89\xfd" + bytes(4) + b"x" * 125
MESSAGE = b"\x81\x81" + bytes(4) + b"x"
FIRST_PIECE, EMPTY_PIECE, LAST_PIECE = (
    b"\x01\x81" + bytes(4) + b"x",
    b"\x00\x80" + bytes(4),
    b"\x80\x80" + bytes(4),
)


class Taking:
    """An application that accepts a socket, and answers each message with its length; it reads none where
    the address says so."""

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Serve until the client is gone."""
        await receive()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/idle":
            await asyncio.sleep(60)
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": str(len(message["text"]))})


@contextmanager
def taking() -> Iterator[Serving]:
    """The application on a server of its own."""
    served = Serving(lambda _hub: Taking(), bounds=ConnectionBounds())
    try:
        yield served
    finally:
        close_all()
        served.stop()


def opened(served: Serving, path: str) -> RawClient:
    """A client whose socket is accepted."""
    client = RawClient(served.port)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    lines = ("Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key)
    client.send(head(path, *lines, method="GET"))
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += client.socket.recv(1)
    assert b" 101 " in answer
    return client


def server_side(served: Serving) -> BoundedSocket:
    """The one socket that the server has."""
    (found,) = served.server.server_state.connections
    assert isinstance(found, BoundedSocket)
    return found


@proves("R-SEC-7", part="pings whose answers nobody reads")
def test_pings_whose_answers_nobody_reads_leave_nothing_in_memory() -> None:
    with taking() as served:
        client = opened(served, "/")
        server = server_side(served)
        for piece in repeat(PING * 500, 200):
            assert client.send(piece)
        assert server.transport.get_write_buffer_size() < MIB


@proves("R-SEC-7", part="messages of a socket that wait")
@pytest.mark.parametrize(
    "sent", [MESSAGE * 5_000, FIRST_PIECE + EMPTY_PIECE * 5_000], ids=["messages", "pieces"]
)
def test_socket_with_thousands_of_messages_or_pieces_ends(sent: bytes) -> None:
    with taking() as served:
        client = opened(served, "/idle")
        client.send(sent)
        began = time.monotonic()
        client.read()
        assert time.monotonic() - began < 10
        assert not served.server.server_state.connections


@proves("R-SEC-7", part="messages of a socket within their bounds")
def test_messages_in_pieces_and_pings_within_the_bounds_are_answered() -> None:
    with taking() as served:
        client = opened(served, "/")
        client.send(PING + FIRST_PIECE + EMPTY_PIECE * 20 + LAST_PIECE + MESSAGE * 20)
        wanted = b"\x8a\x7d" + b"x" * 125 + b"\x81\x011" * 21
        came = b""
        while len(came) < len(wanted):
            came += client.socket.recv(len(wanted) - len(came))
        assert came == wanted

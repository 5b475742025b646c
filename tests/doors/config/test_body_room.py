"""All request bodies of a process together are bounded, and large ones starve no small one (R-SEC-7)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat

import pytest

from config.http_limits.body_room import KIB, MIB, SMALL, BodyRoom
from config.http_limits.request_limits import BODY_LIMITS, LimitBodies
from config.http_limits.web_protocol import ConnectionBounds
from tenancy.core.roles import Role
from tests.conftest import House
from tests.doors.api.program import program
from tests.doors.config.raw_client import RawClient, close_all, head
from tests.doors.config.test_request_bounds import Listener, chunk
from tests.doors.live.serving import Serving, serving
from tests.proves import proves


@pytest.fixture(autouse=True)
def connections_are_closed() -> Iterator[None]:
    """What a test leaves open ends with it."""
    yield
    close_all()


async def identify_by_header(headers: tuple[tuple[bytes, bytes], ...], _peer: str) -> str:
    """The sender that a test names."""
    return dict(headers).get(b"x-sender", b"").decode()


@contextmanager
def roomy(room: int, share: int) -> Iterator[tuple[Serving, BodyRoom]]:
    """The listener behind a room of this size."""
    found = BodyRoom(room, share)
    listener = Listener()
    bounds = ConnectionBounds(parting_seconds=0.3)
    served = Serving(lambda _hub: LimitBodies(listener, found, identify_by_header), bounds=bounds)
    try:
        yield served, found
    finally:
        close_all()
        served.stop()


def holding(site: Serving, room: BodyRoom, sender: str, size: int) -> RawClient:
    """A client that sent so much of a body, and sends no more for now."""
    before, client = room.held, RawClient(site.port)
    client.send(head("/api/v1/tasks", f"Content-Length: {MIB}", f"X-Sender: {sender}") + b"x" * size)
    until = time.monotonic() + 10
    while room.held < before + size - SMALL:
        assert time.monotonic() < until
        time.sleep(0.01)
    return client


def posted(site: Serving, sender: str, size: int, path: str = "/api/v1/tasks") -> bytes:
    """What is answered to a whole body of this size."""
    client = RawClient(site.port)
    lines = (f"Content-Length: {size}", f"X-Sender: {sender}", "Connection: close")
    client.send(head(path, *lines) + b"x" * size)
    return client.read()


@proves("R-SEC-7", part="bodies of all senders together")
def test_bodies_together_beyond_the_room_are_refused_until_there_is_room() -> None:
    with roomy(room=MIB, share=MIB) as (site, room):
        first = holding(site, room, "a", 700 * KIB)
        answer = posted(site, "b", 700 * KIB)
        top, _, body = answer.partition(b"\r\n\r\n")
        assert top.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 2" in top
        problem = json.loads(body)
        assert (problem["code"], problem["data"]) == ("bodies-full", {"retry_after": 2})
        assert b"<h1>No room for that request just now</h1>" in posted(site, "b", 700 * KIB, "/")
        assert posted(site, "b", SMALL).startswith(b"HTTP/1.1 200 ")
        first.close()
        until = time.monotonic() + 10
        while room.held:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert posted(site, "b", 700 * KIB).startswith(b"HTTP/1.1 200 ")
        assert room.held == 0


@proves("R-SEC-7", part="bodies of undeclared length together")
def test_body_in_pieces_is_refused_when_the_room_is_used_up() -> None:
    with roomy(room=MIB, share=MIB) as (site, room):
        holding(site, room, "a", 700 * KIB)
        client = RawClient(site.port)
        client.send(head("/api/v1/tasks", "Transfer-Encoding: chunked", "X-Sender: b"))
        client.send_until_refused(repeat(chunk(65_536), 14))
        assert client.status() == 503
        assert room.held <= MIB


@proves("R-SEC-7", part="bodies of senders that nobody knows")
def test_senders_that_are_not_known_share_one_part_of_the_room() -> None:
    with roomy(room=2 * MIB, share=MIB) as (site, room):
        holding(site, room, "", 900 * KIB)
        assert posted(site, "", 400 * KIB).startswith(b"HTTP/1.1 503 ")
        assert posted(site, "", SMALL).startswith(b"HTTP/1.1 200 ")
        assert posted(site, "known", 900 * KIB).startswith(b"HTTP/1.1 200 ")


def test_room_of_a_process_has_place_for_the_largest_body_of_each_sender() -> None:
    largest = max(limit for _, limit in BODY_LIMITS)
    room = BodyRoom()
    assert room.has("a", largest)
    assert (room.room, room.share) == (64 * MIB, 16 * MIB)


@proves("R-SEC-7", part="a key is looked up before its body has much room")
def test_key_has_room_where_senders_that_are_not_known_used_up_theirs(house: House) -> None:
    token = program(house.tenant.id, Role.OPERATOR).clear

    def status(key: str) -> int:
        client, size = RawClient(site.port), 900 * KIB
        lines = ("Content-Type: application/json", f"Authorization: Bearer {key}", "Connection: close")
        client.send(head("/api/v1/tasks", f"Content-Length: {size}", *lines) + b" " * size)
        return client.status()

    with serving() as site:
        assert status("ilk_nobody.0000") == 401
        for path, size in (("/new/anything", 11 * MIB), ("/corpora", 5 * MIB)):
            RawClient(site.port).send(head(path, f"Content-Length: {size}") + b"x" * (size - 1))
        # What the probes hold for a moment must not turn a filler away.
        time.sleep(1.5)
        until = time.monotonic() + 10
        while status("ilk_nobody.0000") != 503:
            assert time.monotonic() < until
        assert status(token) == 400
        close_all()
        while status("ilk_nobody.0000") != 401:
            assert time.monotonic() < until + 10

"""Bodies, heads and connections are bounded before anything of them is kept (R-SEC-7, W2)."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pytest
from django.conf import settings

from config.http_limits.body_room import KIB, MIB
from config.http_limits.request_limits import BODY_LIMITS, LimitBodies, body_limit
from config.http_limits.web_protocol import ConnectionBounds
from orchestrator.core.files.workspace import LARGEST_TREE
from orchestrator.knowledge.views.corpora import LARGEST_FILE
from tenancy.web.connection_slots import slot_of
from tests.doors.config.raw_client import RawClient, close_all, head
from tests.doors.live.serving import Serving
from tests.proves import proves

QUICK = ConnectionBounds(head_seconds=0.6, body_seconds=0.6, parting_seconds=0.3)
Message = MutableMapping[str, Any]


class Listener:
    """An application that reads every body to its end, and keeps how much it got."""

    def __init__(self) -> None:
        self.bodies: list[int] = []

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer 200 with the length of the body; hold or follow where the address says so."""
        self.bodies.append(0)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            self.bodies[-1] += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        if scope["path"] == "/followed" and (slot := slot_of(scope)) is not None:
            slot.lend()
        length = 20 * MIB if scope["path"] == "/large" else 2
        start = {"type": "http.response.start", "status": 200}
        await send({**start, "headers": [(b"content-length", str(length).encode())]})
        if scope["path"] in {"/held", "/followed"}:
            await receive()
            return
        for _ in range(length // 65_536):
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        await send({"type": "http.response.body", "body": b"x" * (length % 65_536)})


@contextmanager
def listening(bounds: ConnectionBounds = QUICK) -> Iterator[tuple[Serving, Listener]]:
    """The listener behind the bounds, on a server of its own."""
    listener = Listener()
    served = Serving(lambda _hub: LimitBodies(listener), bounds=bounds)
    try:
        yield served, listener
    finally:
        served.stop()


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Serving, Listener]]:
    """One such server for the tests of a module."""
    with listening() as found:
        yield found


@pytest.fixture(autouse=True)
def connections_are_closed() -> Iterator[None]:
    """What a test leaves open ends with it."""
    yield
    close_all()


def chunk(size: int) -> bytes:
    """A piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (size, b"x" * size)


@proves("R-SEC-7", part="bodies by what they declare")
def test_body_declared_too_large_is_refused_before_the_application(place: tuple[Serving, Listener]) -> None:
    site, listener = place
    before = len(listener.bodies)
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", f"Content-Length: {3 * 1024 * MIB}"))
    top, _, body = client.read().partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.1 413 ")
    assert b"content-type: application/problem+json" in top
    assert b"connection: close" in top
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (413, "body-too-large")
    assert problem["type"] == "urn:interlock:problem:body-too-large"
    assert problem["data"] == {"limit": MIB}
    assert len(listener.bodies) == before


@proves("R-SEC-7", part="bodies as they are counted")
def test_body_of_undeclared_length_is_refused_at_the_limit(place: tuple[Serving, Listener]) -> None:
    site, listener = place
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", "Transfer-Encoding: chunked"))
    client.send_until_refused(repeat(chunk(65_536), 300))
    assert client.status() == 413
    # What lies in the system's buffers was never read.
    assert client.sent < 12 * MIB
    assert listener.bodies[-1] <= MIB


@proves("R-SEC-7", part="bodies of pages")
def test_body_of_a_page_too_large_is_refused_by_a_page(place: tuple[Serving, Listener]) -> None:
    site, _ = place
    client = RawClient(site.port)
    client.send(head("/account/login/", f"Content-Length: {300 * MIB}"))
    client.send_until_refused(repeat(b"x" * 65_536, 300))
    answer = client.read()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"text/html" in answer
    assert b"at most 65536 bytes" in answer


def test_body_within_its_limit_is_taken(place: tuple[Serving, Listener]) -> None:
    site, listener = place
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", f"Content-Length: {MIB}", "Connection: close") + b"x" * MIB)
    assert client.status() == 200
    assert listener.bodies[-1] == MIB


@proves("W2", part="a body that is longer than it says")
def test_body_longer_than_declared_is_no_part_of_the_request(place: tuple[Serving, Listener]) -> None:
    site, listener = place
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", "Content-Length: 2") + b"{}" + b"x" * 100_000)
    answer = client.read()
    assert answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 400 "))
    assert listener.bodies[-1] <= 2


@proves("R-SEC-7", part="a body that does not come")
@pytest.mark.parametrize("sent", [b"", b"half of it"])
def test_body_that_stops_is_refused(place: tuple[Serving, Listener], sent: bytes) -> None:
    site, _ = place
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", "Content-Length: 100") + sent)
    began = time.monotonic()
    assert client.status() == 408
    assert time.monotonic() - began < 5


@proves("R-SEC-7", part="a body that drips")
def test_body_that_drips_is_refused_though_it_never_stops(place: tuple[Serving, Listener]) -> None:
    site, _ = place
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", "Content-Length: 100000"))
    began = time.monotonic()
    while not client.answered(0.1):
        assert client.send(b"x")
        assert time.monotonic() - began < 10
    assert client.status() == 408


def test_body_that_comes_at_a_fair_pace_is_taken(place: tuple[Serving, Listener]) -> None:
    site, listener = place
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", "Content-Length: 2000", "Connection: close"))
    for _ in range(10):
        client.send(b"x" * 200)
        time.sleep(0.15)
    assert client.status() == 200
    assert listener.bodies[-1] == 2000


@proves("R-SEC-7", part="heads by size")
@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"y" * 65_536),
        (b"GET /", b"y" * 65_536),
        (b"GET / HTTP/1.1\r\n", b"X-One: 1\r\n" * 1_000),
        (b"", b"\r\n" * 30_000),
        (b"GET / HTTP/1.1\r\nX-", b"y" * 65_536),
    ],
    ids=["one line", "address", "many lines", "empty lines", "a name"],
)
def test_head_too_large_is_refused(place: tuple[Serving, Listener], start: bytes, piece: bytes) -> None:
    site, listener = place
    before = len(listener.bodies)
    client = RawClient(site.port)
    client.send(start)
    client.send_until_refused(repeat(piece, 1_600))
    assert client.status() in {431, 0}
    assert client.sent < 12 * MIB
    assert len(listener.bodies) == before


def test_head_of_64_kilobytes_is_taken_and_one_more_line_is_not(place: tuple[Serving, Listener]) -> None:
    site, _ = place
    for size, status in ((63 * KIB, 200), (65 * KIB, 431)):
        client = RawClient(site.port)
        client.send(head("/", f"X-Long: {'y' * size}", "Connection: close", method="GET"))
        assert client.status() == status


@proves("R-SEC-7", part="what follows a body")
def test_trailers_without_end_are_refused(place: tuple[Serving, Listener]) -> None:
    site, _ = place
    client = RawClient(site.port)
    client.send(head("/api/v1/tasks", "Transfer-Encoding: chunked") + b"0\r\nX-Long: ")
    client.send_until_refused(repeat(b"y" * 65_536, 1_600))
    assert client.status() == 431
    assert client.sent < 12 * MIB


@proves("R-SEC-7", part="heads by time")
def test_head_that_drips_is_refused_in_time(place: tuple[Serving, Listener]) -> None:
    site, _ = place
    client = RawClient(site.port)
    client.send(b"GET / HTTP/1.1\r\n")
    began = time.monotonic()
    while not client.answered(0.1):
        assert client.send(b"X-A: 1\r\n")
        assert time.monotonic() - began < 10
    assert client.status() == 408


@proves("R-SEC-7", part="half-open connections")
@pytest.mark.parametrize("sent", [b"", b"GET / HT", head("/", method="GET") + b"\r\n"])
def test_connection_without_a_request_ends_in_time(place: tuple[Serving, Listener], sent: bytes) -> None:
    site, _ = place
    clients = [RawClient(site.port) for _ in range(50)]
    for client in clients:
        client.send(sent)
    began = time.monotonic()
    for client in clients:
        client.read()
    assert time.monotonic() - began < 15


@proves("R-SEC-7", part="requests one after another without waiting")
def test_pipeline_longer_than_its_bound_ends_the_connection() -> None:
    with listening() as (site, listener):
        client = RawClient(site.port)
        client.send(head("/held", method="GET") + head("/", method="GET") * 1_000)
        client.lasts()
        assert len(listener.bodies) <= QUICK.pipelined + 2


@proves("R-SEC-7", part="answers that nobody reads")
def test_client_that_reads_nothing_is_cut_off() -> None:
    with listening() as (site, listener):
        client = RawClient(site.port)
        client.send(head("/large", method="GET"))
        state = site.server.server_state
        until = time.monotonic() + 20
        while not listener.bodies or state.connections:
            assert time.monotonic() < until
            time.sleep(0.05)
        client.close()


@proves("R-SEC-7", part="the number of connections")
def test_connections_are_bounded_and_idle_ones_make_room() -> None:
    with listening(ConnectionBounds(connections=4)) as (site, _):
        idle = [RawClient(site.port) for _ in range(4)]
        for client in idle:
            client.send(b"GET / HT")
        for _ in range(3):
            client = RawClient(site.port)
            client.send(head("/", "Connection: close", method="GET"))
            assert client.status() == 200
        # Those that waited longest gave way, and no more than were needed.
        assert idle[0].status() == 0
        assert not idle[3].answered()


@proves("R-SEC-7", part="the number of connections")
def test_connections_that_are_all_served_turn_the_next_away() -> None:
    with listening(ConnectionBounds(connections=2, parting_seconds=0.2)) as (site, listener):
        held = [RawClient(site.port) for _ in range(2)]
        for client in held:
            client.send(head("/held", method="GET"))
            assert client.answered(5)
        late = RawClient(site.port)
        assert late.status() == 503
        assert len(listener.bodies) == 2
        held[0].close()
        until = time.monotonic() + 10
        while True:
            client = RawClient(site.port)
            client.send(head("/", "Connection: close", method="GET"))
            if client.status() == 200:
                break
            assert time.monotonic() < until


@proves("R-API-5", part="followers do not use up the connections")
def test_followers_leave_the_connections_to_others() -> None:
    with listening(ConnectionBounds(connections=2)) as (site, _):
        followers = [RawClient(site.port) for _ in range(10)]
        for client in followers:
            client.send(head("/followed", method="GET"))
            assert client.answered(5)
        client = RawClient(site.port)
        client.send(head("/", "Connection: close", method="GET"))
        assert client.status() == 200


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/api/v1/tasks", MIB),
        ("/api/v1/corpora/x", MIB),
        ("/account/login/", 64 * KIB),
        ("/new/code-change", 11 * MIB),
        ("/corpora", 5 * MIB),
        ("/static/x.css", 64 * KIB),
        ("/", 2560 * KIB),
        ("*", 64 * KIB),
    ],
)
def test_limit_of_an_address_is_the_first_that_fits(path: str, limit: int) -> None:
    assert body_limit(path) == limit


def test_limits_of_bodies_fit_what_is_taken_behind_them() -> None:
    assert body_limit("/api/") == getattr(settings, "INTERLOCK_BODY_BYTES", MIB)
    assert body_limit("/new/x") > LARGEST_TREE + settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert body_limit("/corpora") > LARGEST_FILE + settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert body_limit("/workflows/_publish") == settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert BODY_LIMITS[-1][0] == "/"

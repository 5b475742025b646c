"""The way out, with real sockets on loopback: pinned, hop by hop, bounded, and never by a proxy."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.egress_policy import EgressPolicy, target_of
from orchestrator.tools.gateways.egress.guarded_transport import (
    Resolver,
    TooMuch,
    guarded_client,
    look_before_saving,
)
from tests.proves import proves


class Site:
    """A server on loopback that writes down who asked for what, and answers as `play` says."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.play: Callable[[str], tuple[int, dict[str, str], bytes]] = lambda _path: (200, {}, b"hello")
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.seen.append((self.headers["host"], self.path))
                status, headers, body = site.play(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    """One such server."""
    found = Site()
    yield found
    found.close()


def answers(*rounds: Sequence[str]) -> tuple[Resolver, list[str]]:
    """A resolver that answers each question with the next round, and writes the questions down."""
    asked: list[str] = []
    left = list(rounds)

    async def resolver(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    return resolver, asked


def named(site: Site, *, private: bool = True) -> tuple[str, EgressPolicy]:
    """A name for the site, and leave for it."""
    place = f"tools.internal:{site.port}"
    return f"http://{place}", EgressPolicy(origins=(f"http://{place}",), private=(place,) if private else ())


@proves("P8", part="the address that is judged is the one connected")
async def test_the_connection_goes_to_the_judged_address_under_the_names_own_host(site: Site) -> None:
    url, leave = named(site)
    resolver, asked = answers(["127.0.0.1"])
    async with guarded_client(leave, resolver=resolver) as client:
        assert (await client.get(f"{url}/a")).text == "hello"
    assert site.seen == [(f"tools.internal:{site.port}", "/a")]
    assert asked == ["tools.internal"]


@proves("P8", part="a name that rebinds")
async def test_a_name_that_rebinds_to_loopback_is_refused_at_connect(site: Site) -> None:
    url, leave = named(site, private=False)
    resolver, _ = answers(["93.184.216.34"], ["127.0.0.1"])
    # Saved while the name still had a public address …
    assert leave.admit_all(target_of(url), await resolver("tools.internal", site.port))
    # … and connected when it had another.
    async with guarded_client(leave, resolver=resolver) as client:
        with pytest.raises(EgressRefused, match="not public"):
            await client.get(url)
    assert site.seen == []


@proves("P8", part="refused at save")
def test_what_would_be_refused_at_connect_is_refused_before_it_is_saved(site: Site) -> None:
    url, leave = named(site, private=False)
    resolver, _ = answers(["127.0.0.1"])
    with pytest.raises(EgressRefused):
        look_before_saving(url, leave, resolver)
    for literal in (
        f"http://127.0.0.1:{site.port}",
        f"http://[::ffff:127.0.0.1]:{site.port}",
        "http://169.254.169.254",
    ):
        with pytest.raises(EgressRefused):
            look_before_saving(literal, EgressPolicy(origins=(target_of(literal).origin,)))


@proves("P8", part="redirects")
async def test_each_hop_of_a_redirect_is_judged_anew(site: Site) -> None:
    url, leave = named(site)
    resolver, _ = answers(["127.0.0.1"])
    async with guarded_client(leave, resolver=resolver) as client:
        for place in (
            f"http://127.0.0.1:{site.port}/secret",
            "http://169.254.169.254/latest",
            "http://[::1]/",
        ):
            site.play = lambda _path, place=place: (302, {"location": place}, b"")  # type: ignore[misc]
            with pytest.raises(EgressRefused):
                await client.get(url, follow_redirects=True)
    assert {path for _, path in site.seen} == {"/"}


async def test_a_redirect_within_the_origin_may_be_followed_and_is_not_unasked(site: Site) -> None:
    url, leave = named(site)
    resolver, asked = answers(["127.0.0.1"])
    site.play = lambda path: (302, {"location": "/b"}, b"") if path == "/a" else (200, {}, b"there")
    async with guarded_client(leave, resolver=resolver) as client:
        assert (await client.get(f"{url}/a")).status_code == 302
        assert (await client.get(f"{url}/a", follow_redirects=True)).text == "there"
    assert len(asked) == 3


@proves("G7", part="a body that grows while it is read")
async def test_a_compressed_answer_is_refused_before_it_can_grow(site: Site) -> None:
    url, leave = named(site)
    site.play = lambda _path: (200, {"content-encoding": "gzip"}, gzip.compress(b"0" * 50_000_000))
    async with guarded_client(leave, resolver=answers(["127.0.0.1"])[0]) as client:
        with pytest.raises(TooMuch):
            await client.get(url)


async def test_a_body_past_its_bound_ends(site: Site) -> None:
    url, leave = named(site)
    site.play = lambda _path: (200, {}, b"0" * 20_000)
    async with guarded_client(leave, resolver=answers(["127.0.0.1"])[0], most_bytes=10_000) as client:
        with pytest.raises(TooMuch):
            await client.get(url)


async def test_no_proxy_of_the_environment_is_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    url, leave = named(site)
    async with guarded_client(leave, resolver=answers(["127.0.0.1"])[0]) as client:
        assert (await client.get(url)).status_code == 200


async def test_the_next_address_is_tried_where_one_cannot_be_connected(site: Site) -> None:
    url, leave = named(site)
    async with guarded_client(leave, resolver=answers(["127.0.0.2", "127.0.0.1"])[0]) as client:
        assert (await client.get(url, timeout=httpx2.Timeout(5))).text == "hello"

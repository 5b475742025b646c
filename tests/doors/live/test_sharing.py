"""Many viewers of one process: exact delivery, one read for all, and no harm by a slow one."""

import asyncio
import random
from collections.abc import Iterator
from functools import partial
from threading import Event
from time import perf_counter
from uuid import UUID

import pytest
from channels.routing import URLRouter
from django.test import Client

from config.devstack.embedded import EmbeddedValkey
from config.live.routing import build_socket_router
from tests.conftest import House
from tests.doors.api.program import Program
from tests.doors.live.client import PATIENCE, Follower, closing, following, in_thread
from tests.doors.live.serving import QUICK, Serving
from tests.proves import proves
from tests.servers import TestServers
from traces.consumers.websocket import Socket
from traces.live.feeds import Batch, Cursor
from traces.live.follower import Follower as Looking
from traces.live.hints import publish_event_hint
from traces.live.hub import Hub
from traces.live.reader_threads import Readers
from traces.live.scripted_feed import ScriptedFeed
from traces.live.subscribers import Limits, Viewer

VIEWERS, EVENTS, NEWS = 20, 200, 10
# Somebody looks where there is news, and never because time has passed.
UNASKED = Limits(fallback=600)


@pytest.fixture
def feed() -> ScriptedFeed:
    """Events in memory."""
    return ScriptedFeed()


class Slow(ScriptedFeed):
    """Its first read has seen what there is, and takes until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = Event(), Event()

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """What there was when it began."""
        found = super().read(tenant_id, subject, after)
        self.begun.set()
        self.go_on.wait(10)
        return found


def served(feed: ScriptedFeed, limits: Limits) -> Serving:
    """A server of this feed alone."""

    def application(hub: Hub) -> URLRouter:
        return build_socket_router({"^ws/runs/(?P<subject>[0-9a-f-]{36})$": Socket(hub, feed)})

    return Serving(application, limits)


@pytest.fixture
def site(house: House, broker: EmbeddedValkey, feed: ScriptedFeed) -> Iterator[Serving]:
    """The scripted feed, served."""
    serving = served(feed, QUICK)
    yield serving
    serving.stop()


@pytest.fixture
def asked(house: House, broker: EmbeddedValkey, feed: ScriptedFeed) -> Iterator[Serving]:
    """The same, and a slow machine leaves it no time for looks that nobody asked for."""
    serving = served(feed, UNASKED)
    yield serving
    serving.stop()


@pytest.fixture
def run(house: House, feed: ScriptedFeed, reader: Program) -> UUID:
    """A run whose trace has begun."""
    feed.append(house.tenant.id, house.tenant.id, b'{"n":1}')
    return house.tenant.id


def reached(seq: int, follower: Follower) -> bool:
    """Whether a follower stands at `seq` or beyond."""
    return bool(follower.after >= seq)


async def watch(base: str, run: UUID, reader: Program, *, drops: int) -> list[int]:
    """Follow to the end, losing the connection now and then without a word."""
    after, seen = 0, list[int]()
    for leg in range(drops + 1):
        async with following(base, f"/ws/runs/{run}", reader, after=after) as follower:
            enough = EVENTS if leg == drops else min(EVENTS, after + random.randint(1, EVENTS // (drops + 1)))
            await follower.until(partial(reached, enough), 30)
            if leg < drops:
                follower.socket.transport.abort()
            after = follower.after
            seen += [item["n"] for item in follower.items]
    return seen


@proves("R-SESS-11", part="a fifth of the clients drop twice: nothing is missing, nothing comes twice")
async def test_everybody_gets_everything_once(
    site: Serving, house: House, feed: ScriptedFeed, run: UUID, reader: Program
) -> None:
    viewers = [
        asyncio.create_task(watch(site.base, run, reader, drops=2 if number % 5 == 0 else 0))
        for number in range(VIEWERS)
    ]
    for number in range(2, EVENTS + 1):
        seq = feed.append(house.tenant.id, run, b'{"n":%d}' % number)
        publish_event_hint(house.tenant.id, run, seq)
        await asyncio.sleep(0.01)
    expected = list(range(1, EVENTS + 1))
    assert all(seen == expected for seen in await asyncio.gather(*viewers))
    assert feed.reads < EVENTS * 3, "one read serves everybody"


async def told(followers: list[Follower], house: House, feed: ScriptedFeed, run: UUID) -> None:
    """Some news, one after another, each of them with everybody before the next is said."""
    for _ in range(NEWS):
        seq = feed.append(house.tenant.id, run, b'{"n":2}')
        publish_event_hint(house.tenant.id, run, seq)
        await asyncio.gather(*(follower.until(partial(reached, seq)) for follower in followers))


async def test_one_read_serves_all_who_stand_alike(
    asked: Serving, house: House, feed: ScriptedFeed, run: UUID, reader: Program
) -> None:
    stack = [following(asked.base, f"/ws/runs/{run}", reader) for _ in range(10)]
    followers = [await one_.__aenter__() for one_ in stack]
    for follower in followers:
        await follower.until(partial(reached, 1))
    before = feed.reads
    await told(followers, house, feed, run)
    # At most two for each; and one once the broker tells of news, for what may have been missed before.
    assert feed.reads - before <= 2 * NEWS + 1
    for opened in stack:
        await opened.__aexit__(None, None, None)


async def test_news_during_a_newcomer_s_first_read_is_read_at_once(house: House, run: UUID) -> None:
    feed, readers = Slow(), Readers(1)
    feed.append(house.tenant.id, run, b'{"n":1}')
    follower = Looking(feed, house.tenant.id, run, readers, Limits(fallback=600))
    viewer = Viewer(0, None, Limits())
    follower.viewers.add(viewer)
    follower.hint(0)
    following = asyncio.create_task(follower.follow())
    try:
        await in_thread(feed.begun.wait, PATIENCE)
        seq = feed.append(house.tenant.id, run, b'{"n":2}')
        follower.hint(seq)
        feed.go_on.set()
        async with asyncio.timeout(PATIENCE):
            while viewer.at != seq:
                await viewer.next()
    finally:
        following.cancel()
        readers.stop()


async def test_waiting_for_the_store_counts_as_no_work(servers: TestServers) -> None:
    readers, waited = Readers(1), Event()
    started = perf_counter()
    try:
        found, worked = await readers.run_timed(lambda: waited.wait(0.2))
    finally:
        readers.stop()
    assert found is False
    assert 0 <= worked < (perf_counter() - started) / 2


async def test_who_does_not_read_is_sent_away_and_the_others_go_on(
    house: House, broker: EmbeddedValkey, feed: ScriptedFeed, run: UUID, reader: Program
) -> None:
    big = b'{"n":0,"text":"' + b"x" * 200_000 + b'"}'
    site = served(feed, Limits(fallback=0.2, frames=5, share=1.0))
    try:
        async with (
            following(site.base, f"/ws/runs/{run}", reader) as quick,
            following(site.base, f"/ws/runs/{run}", reader) as slow,
        ):
            await slow.take()
            slow.socket.transport.pause_reading()
            for _ in range(150):
                publish_event_hint(house.tenant.id, run, feed.append(house.tenant.id, run, big))
                await quick.until(lambda f: f.after == len(feed.said(house.tenant.id, run)))
            slow.socket.transport.resume_reading()
            assert await closing(slow, 20) == 4408
            assert quick.after == 151
    finally:
        site.stop()


async def test_a_store_that_is_away_ends_no_viewing(
    site: Serving, house: House, feed: ScriptedFeed, run: UUID, reader: Program
) -> None:
    async with following(site.base, f"/ws/runs/{run}", reader) as follower:
        await follower.until(lambda f: f.after == 1)
        feed.failing = True
        publish_event_hint(house.tenant.id, run, feed.append(house.tenant.id, run, b'{"n":2}'))
        await asyncio.sleep(0.3)
        feed.failing = False
        await follower.until(lambda f: f.after == 2)


async def test_viewers_of_one_part_of_a_page_share_a_drawing_and_those_of_another_have_their_own(
    asked: Serving, house: House, feed: ScriptedFeed, run: UUID
) -> None:
    session = {"Origin": f"http://{asked.base}", "Cookie": await in_thread(cookie, house)}
    views = [*[""] * 6, "other"]
    stack = [following(asked.base, f"/ws/runs/{run}", headers=session, html=True, view=one) for one in views]
    followers = [await one.__aenter__() for one in stack]
    for follower in followers:
        await follower.until(partial(reached, 1))
    before = feed.renders
    await told(followers, house, feed, run)
    # Two parts of the page: each is drawn once for each news, and once more at most by the look that follows;
    # and once more when the broker tells of news, for what may have been missed before.
    assert 2 * NEWS <= feed.renders - before <= 4 * NEWS + 2
    for opened in stack:
        await opened.__aexit__(None, None, None)


async def test_a_part_that_no_page_has_is_refused(site: Serving, house: House, run: UUID) -> None:
    session = {"Origin": f"http://{site.base}", "Cookie": await in_thread(cookie, house)}
    async with following(site.base, f"/ws/runs/{run}", headers=session, html=True, view="none") as follower:
        assert await closing(follower) == 4400


def cookie(house: House) -> str:
    """The cookie of a session of the operator's."""
    client = Client()
    client.force_login(house.people.operator.person)
    return f"sessionid={client.cookies['sessionid'].value}"

"""What models write, on sockets and streams: before it is committed, without a cursor, to who may read."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from pytest_django import Settings
from websockets.asyncio.client import ClientConnection

from orchestrator.core.common.run_status import Status
from tenancy.core.roles import Role, Scope
from tests.conftest import House
from tests.doors.api.program import Program, narrow_program, program
from tests.doors.live.client import PATIENCE, Follower, close_code, ended, following, in_thread
from tests.doors.live.serving import Serving
from tests.doors.live.test_streams import events_of, source
from tests.factories.foreign import Talking, foreign, onwards
from tests.factories.world import World
from tests.proves import proves
from traces.live.feeds import extract_sequence
from traces.live.hints import get_publisher, group_of, publish_event_hint
from traces.live.text_deltas import RunAudience

ASKED = "Say hello"
ANSWER = "Hello there, \u202eall of you. "


class Hearing(Follower):
    """Keeps deltas apart from frames."""

    def __init__(self, socket: ClientConnection, name: str = "events", after: Any = 0) -> None:
        super().__init__(socket, name, after)
        self.deltas: list[dict[str, Any]] = []

    async def take(self) -> dict[str, Any]:
        """The next frame; a delta is exactly that."""
        frame: dict[str, Any] = json.loads(await self.socket.recv())
        if "delta" in frame:
            assert set(frame) == {"delta"}
            self.deltas.append(frame["delta"])
            return frame
        self.frames.append(frame)
        assert frame["after"] == self.after
        self.after = frame["seq"]
        self.items += frame.get(self.name, [])
        return frame


@asynccontextmanager
async def hearing(
    site: Serving, run: UUID, key: Program | None = None, **more: Any
) -> AsyncIterator[Hearing]:
    """A socket that asked for deltas, and has heard of everything so far."""
    async with following(site.base, f"/ws/runs/{run}", key, deltas=True, **more) as opened:
        found = Hearing(opened.socket)
        await found.until(lambda f: len(f.frames) > 0)
        yield found


@pytest.fixture
def server(settings: Settings) -> Iterator[Talking]:
    """A model that says a few words, and the rest once it may."""
    with foreign(settings, Talking(ANSWER, "Bye.")) as server:
        assert isinstance(server, Talking)
        yield server


def said_to(hearer: Hearing, text: str, _: Follower) -> bool:
    """Whether the newest that was heard is this text."""
    return bool(hearer.deltas) and hearer.deltas[-1]["text"] == text


def has_more(frames: int, follower: Follower) -> bool:
    """Whether more frames came than these."""
    return len(follower.frames) > frames


async def known(run: UUID) -> None:
    """Until this process knows that somebody follows."""
    async with asyncio.timeout(PATIENCE):
        while not RunAudience(run, "e").there():  # noqa: ASYNC110 - a thread and a broker know, no event
            await asyncio.sleep(0.02)


@proves(
    "R-API-5",
    part="model text while it is written: no cursor, no event, and the committed event in its place",
)
async def test_words_are_heard_before_they_are_committed(
    site: Serving, world: World, reader: Program, server: Talking
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with (
        hearing(site, run, reader) as hearer,
        following(site.base, f"/ws/runs/{run}", reader) as plain,
    ):
        await plain.until(lambda f: len(f.frames) > 0)
        await known(run)
        driving = asyncio.create_task(in_thread(onwards, world, run))
        await hearer.until(lambda _: bool(hearer.deltas))
        stood, seen = hearer.after, list(hearer.items)
        server.go.set()
        await driving
        await hearer.until(ended)
        await plain.until(ended)
    called = [one["payload"]["effect"] for one in seen if one["kind"] == "model_called"]
    first = hearer.deltas[0]
    assert (first["at"], first["text"]) == (0, ANSWER)
    assert not any(one["kind"] == "model_replied" for one in seen)
    assert stood >= (seen[-1]["seq"] if seen else 0)
    assert called in ([], [first["effect"]])
    assert hearer.items == plain.items
    assert first["effect"] in {
        one["payload"].get("effect") for one in hearer.items if one["kind"] == "model_replied"
    }


@proves("R-UI-3", part="hidden letters of what is being written are named")
async def test_a_page_gets_them_as_it_shows_them(
    site: Serving, house: House, world: World, server: Talking
) -> None:
    session = await in_thread(_page_of, house, site)
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with hearing(site, run, **session) as page:
        await known(run)
        driving = asyncio.create_task(in_thread(onwards, world, run))
        await page.until(lambda _: bool(page.deltas))
        server.go.set()
        await driving
    assert page.deltas[0]["text"] == ANSWER.replace("\u202e", "[U+202E]")


@proves("R-API-5", part="model text on a stream: an event without an id")
async def test_a_stream_tells_them_without_an_id(
    site: Serving, world: World, reader: Program, server: Talking
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with source(site.base, run, reader) as told:
        while not told.named("event"):
            await told.take()
        await known(run)
        driving = asyncio.create_task(in_thread(onwards, world, run))
        while not told.named("delta"):
            before = told.last
            await told.take()
        assert told.last == before
        server.go.set()
        await told.to_the_end()
        await driving
    assert told.named("delta")[0]["text"] == ANSWER


async def test_one_run_s_words_are_heard_by_who_follows_it_and_asked_for_them_alone(
    site: Serving, world: World, house: House, reader: Program
) -> None:
    run, other = [await in_thread(world.submit, "tool-loop", ASKED) for _ in range(2)]
    stranger = await in_thread(program, house.people.other_tenant.id, Role.ADMIN)
    blind = await in_thread(_blind, world)
    assert await close_code(site.base, f"/ws/runs/{run}", stranger, deltas=True) == 4404
    assert await close_code(site.base, f"/ws/runs/{run}", blind, deltas=True) == 4403
    assert await close_code(site.base, f"/ws/runs/{run}", reader, deltas="yes") == 4400
    async with (
        hearing(site, run, reader) as one,
        hearing(site, other, reader) as another,
        following(site.base, f"/ws/runs/{run}", reader) as plain,
    ):
        await plain.until(lambda f: len(f.frames) > 0)
        await known(run)
        # No delta: it is ignored, and those behind it are heard.
        get_publisher().write(group_of(run), {"effect": "f" * 32, "at": None})
        for text in ("Hello ", "Hello there "):
            RunAudience(run, "e" * 32).tell(0, text)
            await one.until(partial(said_to, one, text))
        publish_event_hint(world.id, run, 10**6)
        publish_event_hint(world.id, other, 10**6)
        for follower in (one, another, plain):
            beats = len(follower.frames)
            await follower.until(partial(has_more, beats))
    assert another.deltas == []
    assert {"after", "seq"} <= set(plain.frames[-1])
    assert all("delta" not in frame for frame in plain.frames)


def _blind(world: World) -> Program:
    """A key that submits and may not read."""
    return narrow_program(world.id, Role.CLIENT, Scope.SUBMIT)


async def test_whoever_reads_slowly_misses_words_and_nothing_else(
    site: Serving, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", "How much is (12 + 30) * 2?")
    async with hearing(site, run, reader) as hearer:
        await known(run)
        hearer.socket.transport.pause_reading()
        for number in range(300):
            RunAudience(run, "e" * 32).tell(number, "x" * 800)
            await asyncio.sleep(0.001)
        hearer.socket.transport.resume_reading()
        await hearer.until(lambda _: bool(hearer.deltas) and hearer.deltas[-1]["at"] == 299)
        driven = await in_thread(world.drive, run)
        await hearer.until(ended)
    assert Status(driven.status) is Status.COMPLETED
    places = [one["at"] for one in hearer.deltas if one["effect"] == "e" * 32]
    assert places == sorted(places)


@proves("R-SESS-11", part="what is being written moves no cursor: a client that comes back misses no event")
@pytest.mark.parametrize("page", [False, True], ids=["program", "page"])
async def test_a_client_that_heard_words_goes_on_from_the_last_event_that_it_heard(
    site: Serving, house: House, world: World, reader: Program, server: Talking, *, page: bool
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    key, more = (None, await in_thread(_page_of, house, site)) if page else (reader, {})
    async with hearing(site, run, key, **more) as hearer:
        await known(run)
        driving = asyncio.create_task(in_thread(onwards, world, run))
        await hearer.until(lambda _: bool(hearer.deltas))
        # Words may overtake what was committed before them.
        newest = await in_thread(lambda: world.run(run).event_seq)
        await hearer.until(partial(has_reached, newest))
        stood = hearer.after
        for number in range(1, 4):
            RunAudience(run, hearer.deltas[0]["effect"]).tell(number, "x" * 100)
            await hearer.until(partial(has_heard, number))
        # The next beat says how far, and it is no further.
        await hearer.until(partial(has_more, len(hearer.frames)))
        assert hearer.after == stood
    server.go.set()
    await driving
    async with following(site.base, f"/ws/runs/{run}", key, after=stood, **more) as back:
        await back.until(has_caught_up if page else ended)
        assert back.frames[0]["after"] == stood
    if page:
        newest = await in_thread(lambda: world.run(run).event_seq)
        assert extract_sequence(back.after) == newest
        assert "Run ended" in back.frames[0]["html"]
    else:
        assert hearer.items + back.items == await in_thread(events_of, reader, run)


def has_reached(newest: int, follower: Follower) -> bool:
    """Whether everything up to an event was told."""
    return int(str(follower.after).partition(".")[0]) >= newest


def has_heard(number: int, follower: Follower) -> bool:
    """Whether the newest words are those of this number."""
    assert isinstance(follower, Hearing)
    return bool(follower.deltas[-1]["at"] == number)


def has_caught_up(follower: Follower) -> bool:
    """Whether a page was told the end of the run."""
    return any("Run ended" in frame.get("html", "") for frame in follower.frames)


def _page_of(house: House, site: Serving) -> dict[str, Any]:
    """How a person's page of the run says hello."""
    client = Client()
    client.force_login(house.people.operator.person)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    return {"headers": {"Origin": f"http://{site.base}", "Cookie": cookie}, "html": True}


async def test_nobody_is_there_once_the_last_one_has_left(
    site: Serving, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with hearing(site, run, reader):
        await known(run)
    async with asyncio.timeout(PATIENCE):
        while RunAudience(run, "e").there():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)

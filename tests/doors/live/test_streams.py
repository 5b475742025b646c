"""Server-sent events: the same events with the same cursors, and an end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
import orjson
import pytest

from config.http_limits.web_protocol import ConnectionBounds
from tenancy.actions import revoke_key
from tenancy.core.roles import Role, Scope
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey
from tenancy.rest.throttling import PerKey
from tests.conftest import House
from tests.doors.api.program import PROBLEM, Program, narrow_program, program
from tests.doors.live.client import PATIENCE, bearer, following, in_thread
from tests.doors.live.serving import Serving, serving
from tests.factories.world import World
from tests.proves import proves
from traces.live.subscribers import Limits

ASKED = "How much is (12 + 30) * 2?"


class Source:
    """An event source: events by name, and the last id."""

    def __init__(self, response: Any) -> None:
        self.response, self.last = response, ""
        self.said: list[tuple[str, Any]] = []
        self.comments = 0
        self._lines = response.aiter_lines()

    async def take(self) -> bool:
        """The next event or comment; False at the end of the stream."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            if line == "":
                if "event" in fields:
                    self.said.append((fields["event"], orjson.loads(fields["data"])))
                return True
            name, _, value = line.partition(": ")
            if name == "id":
                self.last = value
            if line.startswith(":"):
                self.comments += 1
            fields[name] = value
        return False

    async def to_the_end(self) -> None:
        """Until the server ends it."""
        async with asyncio.timeout(PATIENCE):
            while await self.take():
                pass

    def named(self, name: str) -> list[Any]:
        """What came under a name."""
        return [data for said, data in self.said if said == name]


@asynccontextmanager
async def source(
    base: str, run: UUID, key: Program, *, last: str = "", query: str = ""
) -> AsyncIterator[Source]:
    """An open stream."""
    headers = bearer(key) | {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
    async with (
        httpx2.AsyncClient(timeout=PATIENCE) as client,
        client.stream("GET", f"http://{base}/api/v1/runs/{run}/stream{query}", headers=headers) as response,
    ):
        assert response.status_code == 200, await response.aread()
        yield Source(response)


def events_of(reader: Program, run: Any) -> list[dict[str, Any]]:
    """What GET answers."""
    found: list[dict[str, Any]] = reader.get(f"/runs/{run}/events").json()["results"]
    return found


@proves("R-API-5", part="server-sent events")
async def test_a_stream_carries_a_run_to_its_end(
    site: Serving, world: World, reader: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A broker that was away in a test before is not asked for a while.
    monkeypatch.setattr(PerKey, "_quiet_until", 0.0)
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with source(site.base, run, reader) as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        assert stream.response.headers["cache-control"] == "no-store"
        assert "ratelimit" in stream.response.headers
        while not stream.named("event"):
            await stream.take()
        driving = asyncio.create_task(in_thread(world.drive, run))
        await stream.to_the_end()
        await driving
    assert stream.named("event") == await in_thread(events_of, reader, run)
    assert stream.said[-1] == ("end", {"status": "completed", "terminal_code": "SUCCESS"})
    assert stream.named("progress")[-1]["progress_id"] == int(stream.last)


@proves("R-SESS-11", part="an event source goes on after Last-Event-ID")
async def test_a_stream_goes_on_after_the_last_id(site: Serving, world: World, reader: Program) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    await in_thread(world.drive, run)
    events = await in_thread(events_of, reader, run)
    for last, query in (("3", ""), ("", "?after=3"), ("3", "?after=1")):
        async with source(site.base, run, reader, last=last, query=query) as stream:
            await stream.to_the_end()
        assert stream.named("event") == events[3:]
        assert len(stream.named("end")) == 1


async def test_a_look_at_the_head_of_a_stream_holds_no_seat(world: World, reader: Program) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    headers = bearer(reader) | {"Accept": "text/event-stream"}
    with serving(Limits(sockets_a_person=1)) as site:
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            for _ in range(2):
                answer = await client.head(f"http://{site.base}/api/v1/runs/{run}/stream", headers=headers)
                assert answer.status_code == 200
                assert answer.headers["content-type"].startswith("text/event-stream")
            async with source(site.base, run, reader) as stream:
                assert await stream.take()


async def test_a_server_that_cannot_stream_answers_with_what_there_is(world: World, reader: Program) -> None:
    def asked() -> tuple[bytes, list[dict[str, Any]]]:
        run = world.submit("tool-loop", ASKED)
        world.drive(run)
        answer = reader.get(f"/runs/{run}/stream", headers={"Last-Event-ID": "2"})
        assert answer["Content-Type"] == "text/event-stream"
        return answer.content, events_of(reader, run)

    body, events = await in_thread(asked)
    data = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    assert [orjson.loads(one) for one in data][: len(events) - 2] == events[2:]
    assert body.endswith(b'event: end\ndata: {"status":"completed","terminal_code":"SUCCESS"}\n\n')


@proves("R-API-5", part="a stream refuses as the API does")
async def test_refusals_are_problem_documents(
    site: Serving, world: World, house: House, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    mute = await in_thread(narrow_program, world.id, Role.CLIENT, Scope.SUBMIT)
    stranger = await in_thread(program, house.people.other_tenant.id, Role.ADMIN)
    cases = (
        (run, Program(), "", 401), (run, mute, "", 403), (run, stranger, "", 404),
        (fresh_id(), reader, "", 404), (run, reader, "?after=-1", 400),
    )  # fmt: skip
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        for where, key, query, status in cases:
            headers = (bearer(key) if key.clear else {}) | {"Accept": "text/event-stream"}
            url = f"http://{site.base}/api/v1/runs/{where}/stream{query}"
            answer = await client.get(url, headers=headers)
            assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)


async def test_a_quiet_stream_beats_and_ends_with_its_key(
    site: Serving, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with source(site.base, run, reader) as stream:
        while not stream.comments:
            await stream.take()
        await in_thread(_revoke, world)
        await stream.to_the_end()
    assert stream.named("end") == []


def _revoke(world: World) -> None:
    with tenant_transaction(world.id):
        key = ApiKey.objects.filter(role="auditor").get()
    revoke_key(world.id, key.id)


async def test_streams_take_places_like_sockets(house: House, world: World, reader: Program) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    with serving(Limits(sockets_a_person=1)) as site:
        async with source(site.base, run, reader) as stream, httpx2.AsyncClient() as client:
            await stream.take()
            url = f"http://{site.base}/api/v1/runs/{run}/stream"
            answer = await client.get(url, headers=bearer(reader))
            assert (answer.status_code, answer.json()["code"]) == (429, "too-many-viewers")


@proves("R-API-5", part="followers do not use up the connections")
async def test_followers_are_bounded_by_principal_and_not_by_the_connections(
    house: House, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    with serving(bounds=ConnectionBounds(connections=3)) as site:
        async with AsyncExitStack() as stack, httpx2.AsyncClient() as client:
            for _ in range(6):
                stream = await stack.enter_async_context(source(site.base, run, reader))
                await stream.take()
                socket = await stack.enter_async_context(following(site.base, f"/ws/runs/{run}", reader))
                await socket.take()
            page = await client.get(f"http://{site.base}/account/login/")
            assert page.status_code == 200


async def test_a_stopping_server_ends_its_streams_at_once(
    house: House, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    with serving() as site:
        async with source(site.base, run, reader) as stream:
            await stream.take()
            before = asyncio.get_running_loop().time()
            stopping = asyncio.create_task(in_thread(site.stop))
            await stream.to_the_end()
            await stopping
            assert asyncio.get_running_loop().time() - before < 3

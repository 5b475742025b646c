"""Sockets: who may follow what, in which order it comes, and what happens when hints are lost."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
import redis
from django.test import Client
from websockets.exceptions import InvalidStatus

from config.devstack.embedded import EmbeddedValkey
from tenancy.actions import create_key, revoke_key
from tenancy.actions.keys import rotate_key
from tenancy.core.roles import Role, Scope
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey
from tests.conftest import House
from tests.doors.api.program import Program, narrow_program
from tests.doors.live.client import PATIENCE, close_code, closing, ended, following, in_thread
from tests.doors.live.serving import QUICK, Serving, serving
from tests.factories.world import World, make_world
from tests.proves import proves
from traces.live import hints

ASKED = "How much is (12 + 30) * 2?"


def events_of(reader: Program, run: Any) -> list[dict[str, Any]]:
    """What GET answers."""
    found: list[dict[str, Any]] = reader.get(f"/runs/{run}/events").json()["results"]
    return found


@proves("R-API-5", part="the socket carries what GET answers, in order, live")
async def test_a_run_is_followed_event_by_event(site: Serving, world: World, reader: Program) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with following(site.base, f"/ws/runs/{run}", reader) as follower:
        await follower.until(lambda f: len(f.items) > 0)
        await in_thread(world.drive, run)
        await follower.until(ended)
    assert follower.items == await in_thread(events_of, reader, run)
    assert follower.frames[-1]["end"] == {"status": "completed", "terminal_code": "SUCCESS"}


@proves("R-SESS-11", part="envelopes come in order with their cursor")
async def test_each_frame_carries_the_envelope_of_the_newest_commit(
    site: Serving, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with following(site.base, f"/ws/runs/{run}", reader) as follower:
        await in_thread(world.drive, run)
        await follower.until(ended)
    envelopes = [(frame["progress"], frame["seq"]) for frame in follower.frames if "progress" in frame]
    assert envelopes
    assert [said["progress_id"] for said, _ in envelopes] == [seq for _, seq in envelopes]
    steps = [said["completed_step_count"] for said, _ in envelopes]
    assert steps == sorted(steps)
    assert {said["session_id"] for said, _ in envelopes} == {str(run)}
    last = await in_thread(lambda: reader.get(f"/runs/{run}").json()["progress"])
    assert envelopes[-1][0] == last


@proves("R-SESS-11", part="a client that comes back with its cursor misses nothing and sees nothing twice")
async def test_a_client_goes_on_where_it_stood(site: Serving, world: World, reader: Program) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with following(site.base, f"/ws/runs/{run}", reader) as before:
        await before.until(lambda f: len(f.items) > 0)
    await in_thread(world.drive, run)
    async with following(site.base, f"/ws/runs/{run}", reader, after=before.after) as afterwards:
        await afterwards.until(ended)
    assert before.items + afterwards.items == await in_thread(events_of, reader, run)


async def test_a_client_that_lost_its_place_says_its_cursor_again(
    site: Serving, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    await in_thread(world.drive, run)
    async with following(site.base, f"/ws/runs/{run}", reader) as follower:
        await follower.until(ended)
        follower.after, follower.items = 3, []
        await follower.hello()
        await follower.until(lambda f: len(f.items) > 0)
    assert follower.items == (await in_thread(events_of, reader, run))[3:]


@proves("R-API-5", part="the list of runs, live")
async def test_the_list_tells_of_a_new_run_and_of_its_end(
    site: Serving, world: World, reader: Program
) -> None:
    async with following(site.base, "/ws/runs", reader, name="runs", after="") as follower:
        await follower.until(lambda f: len(f.frames) > 0)
        run = await in_thread(world.submit, "tool-loop", ASKED)
        await follower.until(lambda f: any(row["id"] == str(run) for row in f.items))
        await in_thread(world.drive, run)
        await follower.until(lambda f: f.items[-1]["status"] == "completed")
    assert follower.items[-1] == (await in_thread(lambda: reader.get("/runs").json()["results"]))[0]


@proves("R-UI-1", part="live beside the list of runs")
async def test_the_first_page_and_the_list_of_runs_are_followed_side_by_side(
    site: Serving, house: House, world: World
) -> None:
    session = {"Origin": f"http://{site.base}", "Cookie": await in_thread(cookie, house)}
    page: dict[str, Any] = {"after": "", "headers": session, "html": True}
    async with (
        following(site.base, "/ws/runs", **page) as runs,
        following(site.base, "/ws/overview", **page) as overview,
    ):
        run = await in_thread(world.submit, "tool-loop", ASKED)
        await runs.until(lambda f: any(f'id="run-{run}"' in one.get("html", "") for one in f.frames))
        await overview.until(lambda f: any('<b class="num">1</b>' in one.get("html", "") for one in f.frames))
    assert not any('id="run-' in one.get("html", "") for one in overview.frames)
    assert not any("overview-needs" in one.get("html", "") for one in runs.frames)


def cookie(house: House) -> str:
    """The cookie of a session of the operator's."""
    client = Client()
    client.force_login(house.people.operator.person)
    return f"sessionid={client.cookies['sessionid'].value}"


@proves("R-API-5", part="the inbox, live")
async def test_the_inbox_tells_of_a_request_and_of_its_decision(
    site: Serving, world: World, reader: Program
) -> None:
    run = await in_thread(world.submit, "support-refund", "Refund something")
    async with following(site.base, "/ws/inbox", reader, name="requests", after="") as follower:
        await in_thread(world.drive, run)
        await follower.until(lambda f: len(f.items) > 0)
        (request,) = await in_thread(world.open_requests, run)
        answer = {"order_id": "A-1001"}
        await in_thread(world.decide, request, world.people.submitter, "answer", answer=answer)
        await follower.until(lambda f: f.items[-1]["status"] == "decided")
    assert {row["id"] for row in follower.items} == {str(request.id)}


async def test_lost_hints_cost_seconds_and_nothing_else(
    site: Serving, world: World, reader: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with following(site.base, f"/ws/runs/{run}", reader) as follower:
        await follower.until(lambda f: len(f.items) > 0)
        monkeypatch.setattr(hints.Publisher, "hint", lambda *_, **__: None)
        await in_thread(world.drive, run)
        await follower.until(ended)
    assert follower.items == await in_thread(events_of, reader, run)


async def test_a_broker_that_forgets_everything_is_not_missed(
    site: Serving, world: World, reader: Program, broker: EmbeddedValkey
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with following(site.base, f"/ws/runs/{run}", reader) as follower:
        await follower.until(lambda f: len(f.items) > 0)
        with redis.Redis.from_url(broker.url) as client:
            client.flushall()
            client.client_kill_filter(_type="pubsub")
        await in_thread(world.drive, run)
        await follower.until(ended)
    assert follower.items == await in_thread(events_of, reader, run)


@proves("Z1", part="another tenant's run on a socket")
async def test_another_tenants_run_looks_like_a_missing_one(
    site: Serving, house: House, reader: Program
) -> None:
    theirs = await in_thread(lambda: make_world(House(tenant=house.people.other_tenant, people=house.people)))
    stranger = house.people.stranger
    run = await in_thread(theirs.submit, "tool-loop", ASKED, by=stranger)
    for path in (f"/ws/runs/{run}", f"/ws/runs/{fresh_id()}", "/ws/nothing"):
        assert await close_code(site.base, path, reader) == 4404, path


@proves("R-SEC-5", part="sockets ask who is there")
@proves("R-SEC-11", part="sockets tell of what is in reach alone")
async def test_a_narrow_key_follows_its_own_runs_and_no_others(
    site: Serving, world: World, reader: Program
) -> None:
    mine = await in_thread(lambda: Program(clear=create_key(world.id, Role.CLIENT).clear))
    theirs = await in_thread(world.submit, "tool-loop", ASKED)
    answer = await in_thread(
        lambda: mine.post("/tasks", {"workflow": "tool-loop", "goal": {"objective": ASKED}})
    )
    own = answer.json()["run"]["id"]
    assert await close_code(site.base, f"/ws/runs/{theirs}", mine) == 4404
    async with (
        following(site.base, "/ws/runs", reader, name="runs", after="") as whole,
        following(site.base, "/ws/runs", mine, name="runs", after="") as narrow,
        following(site.base, f"/ws/runs/{own}", mine) as run,
    ):
        await whole.until(lambda f: len({item["id"] for item in f.items}) == 2)
        await narrow.until(lambda f: len(f.items) > 0)
        await run.until(lambda f: len(f.items) > 0)
        await in_thread(world.drive, theirs)
        await in_thread(world.drive, UUID(own))
        await run.until(ended)
        await narrow.until(lambda f: f.items[-1]["status"] == "completed")
    assert {item["id"] for item in narrow.items} == {own}


@proves("R-SEC-11", part="a rotated key's secret before loses its sockets")
async def test_a_key_that_was_rotated_away_is_sent_away_though_its_principal_has_another(
    site: Serving, world: World
) -> None:
    old = await in_thread(create_key, world.id, Role.AUDITOR)
    async with following(site.base, "/ws/runs", old.clear, name="runs", after="") as follower:
        await in_thread(rotate_key, world.id, old.key.id)
        assert await closing(follower) == 4401


async def test_nobody_in_particular_is_asked_to_sign_in(site: Serving, world: World) -> None:
    origin = {"Origin": f"http://{site.base}"}
    assert await close_code(site.base, "/ws/runs", "ilk_nonsense") == 4401
    assert await close_code(site.base, "/ws/runs", headers=origin) == 4401
    assert await close_code(site.base, "/ws/runs", headers=origin | {"Cookie": "sessionid=made-up"}) == 4401


@proves("R-SEC-5", part="sockets ask where a page is from")
@pytest.mark.parametrize("origin", ["http://elsewhere.example", "http://127.0.0.1:1", "null", ""])
async def test_a_page_of_another_origin_is_refused(site: Serving, world: World, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await close_code(site.base, "/ws/runs", headers={"Origin": origin} if origin else {})
    assert refused.value.response.status_code == 403


async def test_a_key_that_may_not_read_is_refused(site: Serving, world: World) -> None:
    key = await in_thread(narrow_program, world.id, Role.CLIENT, Scope.SUBMIT)
    assert await close_code(site.base, "/ws/runs", key) == 4403


@proves("R-SEC-2", part="a revoked key loses its sockets")
async def test_a_revoked_key_is_sent_away_at_the_next_look(
    site: Serving, world: World, reader: Program
) -> None:
    async with following(site.base, "/ws/runs", reader, name="runs", after="") as follower:
        await follower.until(lambda f: len(f.frames) > 0)
        await in_thread(_revoke, world)
        assert await closing(follower) == 4401


def _revoke(world: World) -> None:
    with tenant_transaction(world.id):
        key = ApiKey.objects.filter(role="auditor").get()
    revoke_key(world.id, key.id)


async def test_what_is_no_message_of_ours_is_refused(site: Serving, world: World, reader: Program) -> None:
    for after, more in ((-1, {}), ("x", {}), (True, {}), (0, {"html": "yes"}), (0, {"html": True})):
        run = await in_thread(world.submit, "tool-loop", ASKED)
        assert await close_code(site.base, f"/ws/runs/{run}", reader, after=after, **more) == 4400, after


async def test_a_person_has_so_many_sockets_and_no_more(
    house: House, broker: EmbeddedValkey, reader: Program
) -> None:
    limits = QUICK.__class__(sockets_a_person=2)
    with serving(limits) as site:
        async with following(site.base, "/ws/runs", reader, after="") as first:
            await first.take()
            async with following(site.base, "/ws/runs", reader, after="") as second:
                await second.take()
                assert await close_code(site.base, "/ws/runs", reader, after="") == 4429
            # Whoever has left is gone for the server once it has come to know of it.
            async with asyncio.timeout(PATIENCE):
                while site.hub._seats.total() > 1:  # noqa: ASYNC110 - known to another thread's loop
                    await asyncio.sleep(0.02)
            async with following(site.base, "/ws/runs", reader, after="") as third:
                await third.take()


async def test_a_stopping_server_sends_its_clients_to_the_next_one(
    house: House, broker: EmbeddedValkey, reader: Program
) -> None:
    with serving() as site:
        async with following(site.base, "/ws/runs", reader, after="") as follower:
            await follower.take()
            stopping = asyncio.create_task(in_thread(site.stop))
            assert await closing(follower) == 1012
            await stopping


async def test_a_quiet_run_is_heard_beating(site: Serving, world: World, reader: Program) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    async with following(site.base, f"/ws/runs/{run}", reader) as follower:
        await follower.until(lambda f: len(f.frames) >= 4)
    assert {(f["after"], f["seq"]) for f in follower.frames[1:]} == {(follower.after, follower.after)}
    assert len(follower.items) == follower.after


async def test_a_session_follows_as_its_person(site: Serving, world: World) -> None:
    client = Client()
    await in_thread(client.force_login, world.people.operator.person)
    cookie = {"Cookie": f"sessionid={client.cookies['sessionid'].value}", "Origin": f"http://{site.base}"}
    async with following(site.base, "/ws/runs", headers=cookie, name="runs", after="") as follower:
        await follower.take()
        await in_thread(client.logout)
        assert await closing(follower) == 4401

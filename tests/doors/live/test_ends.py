"""What is followed ends within five seconds of the right to follow it, at the limits that are in force."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import httpx2
import psycopg
import pytest
from django.test import Client

from config.devstack.embedded import EmbeddedValkey
from tenancy.actions import revoke_key
from tenancy.actions.sessions import end_session, end_tenant_session
from tenancy.core.roles import Role, Scope
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, BrowserSession, Membership, Person, TenantSession
from tenancy.web.connection_auth import Presence
from tenancy.web.session_store import digest_of
from tests.conftest import House
from tests.doors.api.program import Program, program
from tests.doors.live.client import closing, following, in_thread
from tests.doors.live.serving import serving
from tests.doors.live.test_streams import Source, source
from tests.factories.second_factor import enrol, set_rules, show_factor
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves
from traces.live import hub as hubs
from traces.live.hub import Hub
from traces.live.subscribers import Limits

SECONDS = 5.0
ASKED = "How much is (12 + 30) * 2?"


class Ends:
    """The ways in which a key's holder may lose the right to read."""

    def __init__(self, world: World, person: Person, superuser: psycopg.Connection) -> None:
        self.world, self.person, self.superuser = world, person, superuser

    def _key(self) -> UUID:
        with tenant_transaction(self.world.id):
            found: UUID = ApiKey.objects.get(principal__owner_id=self.person.id).id
        return found

    def revoked(self) -> None:
        """The key is revoked."""
        revoke_key(self.world.id, self._key())

    def expired(self) -> None:
        """The key's time is over."""
        self.superuser.execute(
            "UPDATE tenancy_apikey SET expires_at = now() - %s WHERE id = %s",
            [timedelta(seconds=1), self._key()],
        )

    def deactivated(self) -> None:
        """The person who answers for it is switched off."""
        self.superuser.execute("UPDATE tenancy_person SET is_active = false WHERE id = %s", [self.person.id])

    def left(self) -> None:
        """That person has no role in the tenant any more."""
        with tenant_transaction(self.world.id):
            Membership.objects.filter(person_id=self.person.id).delete()


@asynccontextmanager
async def followed(
    kind: str, base: str, run: UUID, key: Program
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A run that is followed; what is given waits for its end."""
    if kind == "stream":
        async with source(base, run, key) as stream:
            await stream.take()
            yield stream.to_the_end
        return
    async with following(base, f"/ws/runs/{run}", key) as socket:
        await socket.take()

        async def closed() -> None:
            assert await closing(socket) in {4401, 4403}

        yield closed


@proves("R-API-5", part="a followed stream ends with its key")
@pytest.mark.parametrize("kind", ["stream", "socket"])
@pytest.mark.parametrize("end", ["revoked", "expired", "deactivated", "left"])
async def test_following_ends_within_five_seconds_of_the_right_to(
    house: House, broker: EmbeddedValkey, world: World, superuser: psycopg.Connection, kind: str, end: str
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    person = (await in_thread(make_somebody, house.tenant, Role.AUDITOR)).person
    key = await in_thread(program, world.id, Role.AUDITOR, owner=person)
    with serving(Limits()) as site:
        async with followed(kind, site.base, run, key) as ended:
            await in_thread(getattr(Ends(world, person, superuser), end))
            began = time.monotonic()
            await ended()
            assert time.monotonic() - began < SECONDS


def ended_by_admin(world: World, session: str) -> None:
    """An administrator ends the session within the tenant."""
    with tenant_transaction(world.id):
        within = TenantSession.objects.get(session__digest=digest_of(session))
    end_tenant_session(world.id, within.id, by=world.people.admin.id, reason="lost")


def ended_by_person(world: World, session: str) -> None:
    """Its person ends it everywhere."""
    row = BrowserSession.objects.get(digest=digest_of(session))
    end_session(world.people.operator.person, row.id)


def gone_idle(world: World, session: str) -> None:
    """Nothing was done with it for too long."""
    long_ago = database_now() - timedelta(hours=2)
    BrowserSession.objects.filter(digest=digest_of(session)).update(last_seen_at=long_ago)


def factor_needed(world: World, session: str) -> None:
    """The tenant asks a second factor of the person's role, which the session was not opened with."""
    enrol(world.people.operator.person)
    set_rules(world.id, roles=[Role.OPERATOR])


@proves("R-SEC-11", part="a followed page ends with its session")
@proves("R-SEC-11", part="a followed page ends where its person lacks the second factor of their role")
@pytest.mark.parametrize("kind", ["stream", "socket"])
@pytest.mark.parametrize("end", [ended_by_admin, ended_by_person, gone_idle, factor_needed])
async def test_following_ends_within_five_seconds_of_its_session(
    house: House, broker: EmbeddedValkey, world: World, kind: str, end: Callable[[World, str], None]
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    client = Client(headers={"accept": "text/html"})
    await in_thread(client.force_login, world.people.operator.person)
    await in_thread(client.get, "/runs")
    session = client.cookies["sessionid"].value
    with serving(Limits()) as site:
        headers = {"Cookie": f"sessionid={session}", "Origin": f"http://{site.base}"}
        if kind == "socket":
            async with following(site.base, f"/ws/runs/{run}", headers=headers) as socket:
                await socket.take()
                await in_thread(end, world, session)
                began = time.monotonic()
                assert await closing(socket) == (4403 if end is factor_needed else 4401)
        else:
            url = f"http://{site.base}/api/v1/runs/{run}/stream"
            async with (
                httpx2.AsyncClient(timeout=60) as browser,
                browser.stream("GET", url, headers=headers | {"Accept": "text/event-stream"}) as answer,
            ):
                assert answer.status_code == 200
                stream = Source(answer)
                await stream.take()
                await in_thread(end, world, session)
                began = time.monotonic()
                await stream.to_the_end()
        assert time.monotonic() - began < SECONDS


@proves("R-SEC-11", part="nobody follows without the second factor of their role")
async def test_a_session_follows_once_it_has_shown_the_factor_of_its_role(
    house: House, broker: EmbeddedValkey, world: World
) -> None:
    run = await in_thread(world.submit, "tool-loop", ASKED)
    client, person = Client(headers={"accept": "text/html"}), world.people.operator.person
    await in_thread(client.force_login, person)
    await in_thread(set_rules, world.id, roles=[Role.OPERATOR])
    with serving(Limits()) as site:
        headers = {
            "Cookie": f"sessionid={client.cookies['sessionid'].value}",
            "Origin": f"http://{site.base}",
        }
        url = f"http://{site.base}/api/v1/runs/{run}/stream"
        async with httpx2.AsyncClient(timeout=60) as browser:
            answer = await browser.get(url, headers=headers | {"Accept": "text/event-stream"})
            assert answer.status_code == 401
        async with following(site.base, f"/ws/runs/{run}", headers=headers) as socket:
            assert await closing(socket) == 4403
        factor = await in_thread(enrol, person)
        async with following(site.base, f"/ws/runs/{run}", headers=headers) as socket:
            assert await closing(socket) == 4403
        await in_thread(show_factor, client, factor)
        async with following(site.base, f"/ws/runs/{run}", headers=headers) as socket:
            await socket.take()


async def test_followers_of_one_principal_share_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Presence] = []

    def look(presence: Presence) -> Presence:
        looks.append(presence)
        return presence

    monkeypatch.setattr(hubs, "look_again", look)
    hub = Hub(Limits(standing=0.3))
    who = [Presence(tenant=fresh_id(), principal=fresh_id(), scopes=(Scope.READ.value,)) for _ in range(2)]
    await asyncio.gather(*(hub.look_again(one) for one in who * 20))
    assert sorted(map(hash, looks)) == sorted(map(hash, who))
    await asyncio.sleep(0.4)
    await hub.look_again(who[0])
    assert len(looks) == 3
    hub.close()

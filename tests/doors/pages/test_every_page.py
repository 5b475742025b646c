"""Every address of the console, none left out: who is not signed in, and what belongs to another tenant."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from budgets.actions.ceilings import change_ceilings
from budgets.actions.prices import state_price
from budgets.core.ceilings import Ceilings
from budgets.core.pricing import ModelPrice
from orchestrator.policies.models import PolicyProposal
from orchestrator.runs.actions.emergency_stop import stop_everything
from orchestrator.runs.actions.saved_views import save_view
from orchestrator.runs.queries.run_list import Filters
from orchestrator.tools.actions.destinations import set_web
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import BrowserSession, Membership, Queue, TenantSession
from tests.doors.api.doors import OUTSIDE, things_of
from tests.doors.pages.people import alike, at
from tests.doors.pages.people import world as world
from tests.factories.furniture import furnish_like_the_verb
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

pytestmark = pytest.mark.slow

# What a person without a session may reach: the shell's own preferences, which are cookies.
OPEN = ("preferences",)
# What shows none of `marks` to its own tenant: empty forms, settings, figures of what has ended.
PLAIN = {
    "approvals/together", "boundaries/_publish", "budgets/ceilings", "budgets/figures", "budgets/rates",
    "policy/rule", "policy/undo", "preferences", "runs/bulk", "styleguide", "system/stop",
    "tenant/people/invite", "tenant/sign-in-rules", "tenant/switch", "workflows/_publish",
}  # fmt: skip
ID = re.compile(r"""\sid=["']([^"']+)""")
SMALL = {"<int:seq>": "1", "<int:number>": "1"}


def pages(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    """The address of every page that is ours."""
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from pages(pattern.url_patterns, route)
        elif not route.startswith(("api/", "account/")) and route not in OUTSIDE:
            yield route


# The platform's pages belong to no tenant (test_platform.py).
PLATFORM = sorted(route for route in pages(get_resolver().url_patterns) if route.startswith("platform/"))
EVERY = sorted(set(pages(get_resolver().url_patterns)) - set(PLATFORM))
OF_SOMETHING = [route for route in EVERY if "<" in route]
OF_NOTHING = [route for route in EVERY if "<" not in route]


def address(route: str, things: dict[str, str]) -> str:
    """The route with these things for its places."""
    for place, thing in {**SMALL, **things}.items():
        route = route.replace(place, thing)
    assert "<" not in route, f"{route}: say in `belongings` what stands there"
    return f"/{route}"


def nothing() -> dict[str, str]:
    """Things that nobody has."""
    unknown = str(fresh_id())
    names = (
        "run_id",
        "request_id",
        "person_id",
        "member_id",
        "key_id",
        "stop_id",
        "circuit_id",
        "webhook_id",
        "review_id",
        "queue_id",
        "view_id",
        "session_id",
    )
    ids = {f"<uuid:{name}>": unknown for name in names}
    return ids | {
        "<str:name>": "no.such",
        "<str:tenant_slug>": "none",
        "<str:slug>": "no-such-one",
        "<str:server>": "no-such-one",
        "<str:corpus>": "no-such-one",
        "<str:document>": "no-such-one",
        "<slug:workflow>": "no-such-one",
    }


def a_session(world: World) -> TenantSession:
    """A session of a person of the tenant's, in the tenant's context."""
    person, now = world.people.auditor.person, database_now()
    row = BrowserSession.objects.create(
        digest=fresh_id().bytes * 2, data="", person=person, started_at=now, last_seen_at=now
    )
    return TenantSession.objects.create(
        tenant_id=world.id,
        session=row,
        person=person,
        began_at=now,
        last_seen_at=now,
        browser="alone in sessions",
    )


def belongings(world: World) -> dict[str, str]:
    """One thing of each kind, all in this tenant alone."""
    things = things_of(world)
    view = save_view(world.id, Filters(view="needs"), name="Alone in views", by=world.people.admin.id)
    with tenant_transaction(world.id):
        member = Membership.objects.filter(role=Role.REVIEWER.value)[0]
        key = world.people.client_key.key.id
        session = a_session(world)
        queue = Queue.objects.get(name=things["queue"])
    return nothing() | {
        "<uuid:run_id>": things["run_id"], "<uuid:request_id>": things["request_id"],
        "<uuid:person_id>": str(member.person_id), "<uuid:member_id>": str(member.id),
        "<uuid:key_id>": str(key), "<uuid:session_id>": str(session.id),
        "<uuid:circuit_id>": things["circuit_id"],
        "<uuid:webhook_id>": things["webhook_id"], "<uuid:view_id>": str(view.id),
        "<uuid:review_id>": things["review_id"], "<uuid:queue_id>": str(queue.id),
        "<str:name>": things["name"], "<str:server>": things["server"],
        "<str:corpus>": things["corpus"], "<str:document>": things["document"],
        "<str:slug>": things["slug"], "<slug:workflow>": things["slug"],
    }  # fmt: skip


@proves("R-UI-11", part="no page without a session")
@pytest.mark.parametrize("route", [route for route in [*EVERY, *PLATFORM] if route not in OPEN])
def test_nobody_sees_a_page_without_signing_in(world: World, route: str) -> None:
    nobody = Client(headers={"accept": "text/html"})
    for ask in (nobody.get, nobody.post):
        answer = ask(address(route, nothing()))
        assert answer.status_code in (302, 303, 401, 405), route
        if answer.status_code == 302:
            assert answer["Location"].startswith("/account/login/"), route
        if answer.status_code == 303:
            assert nobody.get(answer["Location"])["Location"].startswith("/account/login/"), route


@proves("R-SEC-1", part="every page with foreign ids")
def test_a_foreign_thing_is_answered_like_a_missing_one(world: World) -> None:
    stranger = at(make_somebody(world.people.other_tenant, Role.ADMIN))
    theirs, none = belongings(world), nothing()
    for route in OF_SOMETHING:
        for ask in (stranger.get, stranger.post):
            foreign, missing = (
                ask(address(route, things), {"reason": "because"}) for things in (theirs, none)
            )
            assert foreign.status_code == missing.status_code, route
            assert foreign.status_code in (303, 404, 405, 422), route
            if foreign.status_code == 303:
                ways = [one["Location"] for one in (foreign, missing)]
                assert told_text(ways[0], theirs) == told_text(ways[1], none), route
                assert {stranger.get(way).status_code for way in ways} <= {200, 404}, route
            if foreign.status_code == 404:
                assert told(foreign, theirs) == told(missing, none), route


@proves("R-SEC-1", part="every page that names nobody's thing")
@proves("Z3", part="pages")
def test_no_page_of_its_own_accord_shows_what_is_another_tenant_s(world: World) -> None:
    others, seen = world.people.other_tenant, set()
    furnish_like_the_verb(others.id)
    theirs, owner, stranger = marks(world), at(world.people.admin), at(make_somebody(others, Role.ADMIN))
    for route in OF_NOTHING:
        # Its own tenant looks first: what is kept from one answer for the next must not be another's. Where
        # that sees none of it, nothing would have been tried.
        mine = found_in(owner.get(f"/{route}"), theirs)
        assert bool(mine) is (route not in PLAIN), f"{route}: furnish it in `marks`"
        seen.update(mine)
        assert found_in(stranger.get(f"/{route}"), theirs) == [], route
    assert sorted(theirs - seen) == []


def marks(world: World) -> set[str]:
    """Ids and names that are this tenant's alone and that its own pages show."""
    things = belongings(world)
    price = ModelPrice(
        provider="openai", model="alone-priced", input=Decimal("0.1"), output=Decimal("0.1"), source="tenant",
        version="",
    )  # fmt: skip
    state_price(world.id, price, by=None, reason="Theirs.")
    set_web(world.id, ("https://alone-on-the-web.example/*",), expected=None, by=None, reason="Theirs.")
    change_ceilings(world.id, Ceilings(daily_usd=Decimal("7654.32")), by=None, reason="Theirs.")
    ran = world.submit(things["<str:slug>"], "How much is 1 + 1?")
    world.drive(ran)
    tool = things["<str:name>"]
    stop = stop_everything("tool", tenant_id=world.id, target=tool, by=None, reason="As we say")
    ids = {**things, "ran": str(ran), "<uuid:stop_id>": str(stop.id)}.values()
    names = ("Alone in views", "As we say", "alone-priced", "7,654.32", "https://alone-on-the-web.example/*")
    with tenant_transaction(world.id):
        waiting = [str(one.id) for kind in (PolicyProposal, ToolProposal) for one in kind.objects.all()]
    # Not the administrator's own address: it heads every page of theirs.
    found = (*ids, *names, *waiting, world.people.auditor.person.email)
    return {one for one in found if len(one) >= 6 and not one.isdecimal()}


def found_in(answer: Any, theirs: set[str]) -> list[str]:
    """Which of these stand in an answer, or in where it leads."""
    # A table to download is streamed; it is read like any other.
    source = b"".join(answer).decode() + answer.get("Location", "")
    return sorted(one for one in theirs if one in source)


def told(answer: object, things: dict[str, str]) -> str:
    """The page without the things that were asked for."""
    return told_text(alike(answer, UUID(int=0)), things)


def told_text(source: str, things: dict[str, str]) -> str:
    """A text without the things that were asked for."""
    for thing in things.values():
        source = source.replace(thing, "THING")
    return source


@proves("R-UI-11", part="no address leads to an empty page")
def test_whoever_opens_the_address_of_a_form_is_led_to_its_page(world: World) -> None:
    admin, things = at(world.people.admin), belongings(world)
    led = []
    for route in EVERY:
        answer = admin.get(address(route, things))
        assert answer.status_code != 405, f"{route} takes forms alone: put it under `posted`"
        if answer.status_code == 303:
            led.append(route)
            assert admin.get(answer["Location"]).status_code == 200, route
    assert {"system/stop", "budgets/rates", "runs/bulk", "approvals/<uuid:request_id>/preview"} <= set(led)


@proves("R-UI-11", part="a label leads to its own field")
@pytest.mark.parametrize("route", [route for route in EVERY if "<" not in route])
def test_no_page_gives_two_things_one_id(world: World, route: str) -> None:
    answer = at(world.people.admin).get(f"/{route}")
    # A table to download is streamed; it is read like any other.
    ids = ID.findall(b"".join(answer).decode())
    assert sorted(name for name in set(ids) if ids.count(name) > 1) == []

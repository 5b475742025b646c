"""The platform's pages: tenants opened, changed, suspended and resumed by a platform administrator, and by
nobody else (R-SEC-10, R-GRAPH-9)."""

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from orchestrator.runs.models.run import Run
from tenancy.actions import add_member
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, NoticeMail, Tenant
from tenancy.platform_models import PlatformEntry
from tests.doors.pages.browsers import words
from tests.doors.pages.people import HOSTILE, at
from tests.doors.pages.people import world as world
from tests.doors.pages.test_every_page import PLATFORM, address, nothing
from tests.factories.platform import Platform, make_platform_admin, typed
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves
from tests.servers import TestServers


@pytest.fixture
def platform(world: World, servers: TestServers) -> Platform:
    """A platform administrator who is in no tenant."""
    return make_platform_admin(servers)


@pytest.fixture
def ops(platform: Platform) -> Client:
    """Their browser."""
    client = Client(headers={"accept": "text/html"})
    client.force_login(platform.person)
    return client


def form(**more: Any) -> dict[str, Any]:
    """A tenant to open, which nobody has."""
    slug = f"acme-{fresh_id().hex[-12:]}"
    return {
        "slug": slug, "name": "Acme", "time_zone": "Europe/Zurich", "tier": "trial",
        "highest_autonomy_tier": "4", "administrator_name": "Ada", "administrator": f"ada@{slug}.example",
        **more,
    }  # fmt: skip


def tag_on(page: Any) -> str:
    """The tag of what a page shows."""
    (found,) = re.findall(r'name="tag" value="([^"]+)"', page.content.decode())
    return str(found)


@proves("R-SEC-10", part="create on the page")
@proves("R-GRAPH-9", part="set on the page")
def test_tenant_is_opened_on_the_page_and_its_administrator_gets_a_link(ops: Client) -> None:
    given = form()
    page = ops.post("/platform/tenants", given)
    assert page.status_code == 200
    assert "It is shown this once" in words(page)
    (path,) = re.findall(r"http://testserver(/account/password/reset/key/[^<\"]+)<", page.content.decode())
    row = Tenant.objects.get(slug=given["slug"])
    assert (row.time_zone, row.tier, row.highest_autonomy_tier) == ("Europe/Zurich", "trial", 4)
    again = words(ops.get(f"/platform/tenants/{row.slug}"))
    assert "password/reset" not in again
    assert "Nobody who administers the tenant has signed in yet" in again
    client = Client()
    where = client.get(path, follow=True).redirect_chain[-1][0]
    password = "correct horse battery staple"
    client.post(where, {"password1": password, "password2": password})
    client.post("/account/login/", {"login": given["administrator"], "password": password})
    assert "the platform administrator" in words(client.get("/tenant/audit"))
    after = words(ops.get(f"/platform/tenants/{row.slug}"))
    assert "Nobody who administers the tenant" not in after
    late = ops.post(
        f"/platform/tenants/{row.slug}/administrator",
        {"administrator": "eve@people.example", "administrator_name": "Eve"},
    )
    assert late.status_code == 409


@proves("R-SEC-10", part="the first administrator's link goes by mail, from the page")
def test_link_of_the_page_is_mailed_where_mail_is_set_up(ops: Client, settings: Settings) -> None:
    settings.INTERLOCK_SENDS_MAIL = True
    given = form()
    page = ops.post("/platform/tenants", given, follow=True)
    assert "is on its way to" in words(page)
    with tenant_transaction(Tenant.objects.get(slug=given["slug"]).id):
        assert NoticeMail.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"slug": "Not A Slug"}, {"name": ""}, {"time_zone": "Mars/Olympus"}, {"tier": "gold"},
        {"highest_autonomy_tier": "8"}, {"administrator": "nobody"}, {"administrator_name": ""},
    ],
)  # fmt: skip
def test_form_with_a_wrong_value_comes_back_and_opens_nothing(ops: Client, wrong: dict[str, str]) -> None:
    before = Tenant.objects.count()
    page = ops.post("/platform/tenants", form(**wrong))
    assert page.status_code == 422
    assert "data-errors" in page.content.decode()
    assert Tenant.objects.count() == before


def test_slug_that_is_taken_is_said_at_its_field(ops: Client, world: World) -> None:
    page = ops.post("/platform/tenants", form(slug=world.house.tenant.slug))
    assert page.status_code == 422
    assert "There is a tenant" in words(page)


@proves("R-SEC-10", part="update on the page")
def test_settings_are_changed_on_the_page_over_what_was_looked_at(ops: Client, world: World) -> None:
    where = f"/platform/tenants/{world.house.tenant.slug}"
    given = {
        "name": "Renamed", "time_zone": "UTC", "tier": "standard", "highest_autonomy_tier": "2",
        "reason": "asked for", "tag": tag_on(ops.get(where)),
    }  # fmt: skip
    assert "The tenant is changed." in words(ops.post(where, given, follow=True))
    row = Tenant.objects.get(id=world.id)
    assert (row.name, row.highest_autonomy_tier) == ("Renamed", 2)
    stale = ops.post(where, {**given, "name": "Again"})
    assert stale.status_code == 412
    assert "in the meantime" in words(stale)
    assert Tenant.objects.get(id=world.id).name == "Renamed"
    assert ops.post(where, {**given, "name": "Again", "tag": tag_on(stale)}).status_code == 302
    with tenant_transaction(world.id):
        assert AuditEntry.objects.filter(verb="tenant.change", platform=True).count() == 2


def test_zone_that_is_offered_no_more_stays_when_something_else_changes(ops: Client, world: World) -> None:
    Tenant.objects.filter(id=world.id).update(time_zone="Etc/GMT+3")
    page = ops.get(f"/platform/tenants/{world.house.tenant.slug}")
    assert '<option value="Etc/GMT+3" selected>' in page.content.decode()


@proves("R-SEC-10", part="suspending asks once more and says how many runs pause")
def test_suspending_asks_once_more_with_the_number_of_runs(ops: Client, world: World) -> None:
    world.submit("tool-loop", "How much is 1 + 1?")
    slug = world.house.tenant.slug
    asked = words(ops.get(f"/platform/tenants/{slug}/suspend"))
    assert "1 run will pause" in asked
    assert Tenant.objects.get(id=world.id).suspended_at is None
    unreasoned = ops.post(f"/platform/tenants/{slug}/suspend", {"reason": ""})
    assert unreasoned.status_code == 422
    done = ops.post(f"/platform/tenants/{slug}/suspend", {"reason": "unpaid"}, follow=True)
    assert "is suspended; 1 run pause" in words(done)
    admin = at(world.people.admin)
    assert "This tenant is suspended: unpaid" in words(admin.get("/runs"))
    again = ops.get(f"/platform/tenants/{slug}/suspend")
    assert again["Location"] == f"/platform/tenants/{slug}"
    ops.post(f"/platform/tenants/{slug}/resume", {"reason": "paid"})
    told = words(admin.get("/tenant/audit"))
    assert "tenant.suspend" in told
    assert "the platform administrator" in told
    log = words(ops.get("/platform/log"))
    assert "tenant.suspend" in log
    assert slug in log


@proves("R-SEC-10", part="nobody of a tenant sees the platform")
def test_platform_is_404_to_everybody_of_a_tenant(world: World) -> None:
    things = {**nothing(), "<str:tenant_slug>": world.house.tenant.slug}
    for role in Role:
        client = at(make_somebody(world.house.tenant, role))
        assert 'href="/platform' not in client.get("/preferences").content.decode()
        for route in PLATFORM:
            where = address(route, things)
            get = client.get(where, follow=True)
            assert get.status_code == 404, route
            assert client.post(where, form(reason="mine")).status_code in (404, 405), route
    assert Tenant.objects.get(id=world.id).suspended_at is None
    assert not PlatformEntry.objects.filter(object=f"tenant:{world.id}").exists()


@proves("R-SEC-10", part="a platform administrator sees nothing in a tenant")
def test_platform_administrator_sees_nothing_of_what_is_in_a_tenant(ops: Client, world: World) -> None:
    run = world.submit("tool-loop", "The objective nobody outside may read")
    for path in ("/runs", f"/runs/{run}", "/tenant/people", "/tenant/audit", "/approvals", "/budgets"):
        page = ops.get(path)
        assert page.status_code == 403, path
        assert "The objective nobody" not in words(page)
    for path in ("/platform/tenants", f"/platform/tenants/{world.house.tenant.slug}", "/platform/log"):
        said = words(ops.get(path))
        assert "The objective nobody" not in said
        assert world.people.operator.person.email not in said
        assert str(run) not in said
    with tenant_transaction(world.id):
        assert Run.objects.count() == 1


def test_right_that_is_taken_is_gone_with_the_next_page(ops: Client, platform: Platform) -> None:
    assert ops.get("/platform/tenants").status_code == 200
    typed(platform.servers, "remove", platform.person.email, "--reason", "left")
    assert ops.get("/platform/tenants").status_code == 404


def test_member_who_administers_the_platform_is_led_there_by_their_menu(
    ops: Client, platform: Platform, world: World
) -> None:
    add_member(world.id, platform.person, Role.AUDITOR)
    page = ops.get("/")
    assert page.status_code == 200
    assert 'href="/platform/tenants"' in page.content.decode()
    assert "Your tenants" in words(ops.get("/platform/tenants"))


@proves("R-SEC-5", part="hostile text on the platform's pages")
def test_hostile_text_is_shown_as_text_on_the_platforms_pages(ops: Client, world: World) -> None:
    Tenant.objects.filter(id=world.id).update(name=HOSTILE[:200])
    slug = world.house.tenant.slug
    ops.post(f"/platform/tenants/{slug}/suspend", {"reason": HOSTILE})
    for path in ("/platform/tenants", f"/platform/tenants/{slug}", "/platform/log"):
        source = ops.get(path).content.decode()
        assert "<script>alert(1)" not in source, path
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", source), path
        assert "{{ 7|add:7 }}" in source or "&lt;script&gt;" in source, path


def test_unknown_tenant_is_404_to_a_platform_administrator(ops: Client) -> None:
    for route in PLATFORM:
        if "<" in route:
            assert ops.get(address(route, nothing()), follow=True).status_code == 404, route

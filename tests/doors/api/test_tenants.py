"""Tenants by a platform administrator's program: opened, changed, suspended, resumed (R-SEC-10)."""

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from orchestrator.runs.models.run import Run
from tenancy.actions.platform_admins import create_platform_key
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership, NoticeMail, PersonTie, Tenant
from tenancy.platform_models import PlatformAnswer, PlatformEntry
from tests.doors.api.doors import DOORS
from tests.doors.api.platform_doors import PLATFORM_DOORS
from tests.doors.api.program import Program, pointers, program, refusal
from tests.doors.api.test_rights import path_of
from tests.doors.pages.browsers import browser, words
from tests.factories.platform import OWNER, Platform, make_platform_admin, owner_connection
from tests.factories.world import World
from tests.proves import proves
from tests.servers import TestServers


@pytest.fixture
def platform(world: World, servers: TestServers) -> Platform:
    """A platform administrator who is in no tenant, and their program."""
    return make_platform_admin(servers)


def body(**more: Any) -> dict[str, Any]:
    """A tenant to open, which nobody has."""
    slug = f"acme-{fresh_id().hex[-12:]}"
    return {
        "slug": slug, "name": "Acme", "administrator": f"ada@{slug}.example", "administrator_name": "Ada",
        **more,
    }  # fmt: skip


@proves("R-SEC-10", part="create by program")
@proves("R-GRAPH-9", part="set by program")
def test_opened_tenant_has_its_settings_and_its_first_administrator(platform: Platform) -> None:
    asked = body(time_zone="Europe/Zurich", tier="trial", highest_autonomy_tier=4)
    answer = platform.program.post("/tenants", asked)
    assert answer.status_code == 201, answer.json()
    made = answer.json()["tenant"]
    assert (made["time_zone"], made["tier"], made["highest_autonomy_tier"]) == ("Europe/Zurich", "trial", 4)
    assert (made["administrators"], made["administrators_waiting"]) == (1, 1)
    assert made["first_administrator"] == asked["administrator"]
    client = Client()
    path = re.sub(r"^https?://[^/]+", "", answer.json()["link"])
    where = client.get(path, follow=True).redirect_chain[-1][0]
    password = "correct horse battery staple"
    client.post(where, {"password1": password, "password2": password})
    client.post("/account/login/", {"login": asked["administrator"], "password": password})
    assert "Add a person" in words(client.get("/tenant/people"))
    log = words(client.get("/tenant/audit"))
    assert "the platform administrator" in log
    assert platform.person.name not in re.sub("the platform administrator", "", log)
    shown = platform.program.get(f"/tenants/{asked['slug']}").json()
    assert (shown["administrators"], shown["administrators_waiting"]) == (1, 0)


@proves("R-SEC-10", part="the first administrator's link goes by mail")
def test_link_is_mailed_where_mail_is_set_up_and_relates_nobody_by_being_seen(
    platform: Platform, settings: Settings
) -> None:
    settings.INTERLOCK_SENDS_MAIL = True
    answer = platform.program.post("/tenants", body()).json()
    assert (answer["delivery"], answer["link"]) == ("mailed", None)
    with tenant_transaction(Tenant.objects.get(slug=answer["tenant"]["slug"]).id):
        assert NoticeMail.objects.count() == 1
        assert not PersonTie.objects.filter(kind="link_seen").exists()


@proves("W1", part="a tenant is opened once")
def test_tenant_is_opened_once_under_an_idempotency_key(platform: Platform) -> None:
    asked = body()
    first = platform.program.post("/tenants", asked, once="k1")
    again = platform.program.post("/tenants", asked, once="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["link"]
    assert again.json() == {**first.json(), "link": None}
    assert again["Idempotent-Replay"] == "true"
    assert "account" not in PlatformAnswer.objects.get(key="k1", api_key__person=platform.person).answer
    assert refusal(platform.program.post("/tenants", body(), once="k1")) == (422, "idempotency-key-reused")
    refused = platform.program.post("/tenants", asked)
    assert (refusal(refused), pointers(refused)) == ((400, "invalid-input"), ["/slug"])


def test_refused_tenant_can_be_tried_again_under_its_key(platform: Platform) -> None:
    taken = platform.program.post("/tenants", body()).json()["tenant"]["slug"]
    assert platform.program.post("/tenants", body(slug=taken), once="k2").status_code == 400
    assert platform.program.post("/tenants", body(), once="k2").status_code == 201


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"slug": "Not A Slug"}, "/slug"),
        ({"time_zone": "Mars/Olympus"}, "/time_zone"),
        ({"tier": "gold"}, "/tier"),
        ({"highest_autonomy_tier": 8}, "/highest_autonomy_tier"),
        ({"administrator": "nobody"}, "/administrator"),
        ({"administrator": "\u212aelvin@people.example"}, "/administrator"),
        ({"extra": 1}, "/extra"),
    ],
)
def test_tenant_with_a_wrong_value_is_refused_by_its_field(
    platform: Platform, wrong: dict[str, Any], pointer: str
) -> None:
    asked = body(**wrong)
    answer = platform.program.post("/tenants", asked)
    assert answer.status_code == 400
    assert pointers(answer) == [pointer]
    assert not Tenant.objects.filter(slug=asked["slug"]).exists()


@proves("R-SEC-10", part="update by program")
def test_changed_tenant_is_audited_in_both_logs(platform: Platform, world: World) -> None:
    slug = world.house.tenant.slug
    shown = platform.program.get(f"/tenants/{slug}")
    change = {"tier": "enterprise", "highest_autonomy_tier": 3, "reason": "grown"}
    headers = {"If-Match": shown["ETag"]}
    answer = platform.program.send("patch", f"/tenants/{slug}", change, headers=headers)
    assert answer.status_code == 200, answer.json()
    assert (answer.json()["tier"], answer.json()["highest_autonomy_tier"]) == ("enterprise", 3)
    stale = platform.program.send("patch", f"/tenants/{slug}", change, headers=headers)
    assert refusal(stale) == (412, "stale")
    with tenant_transaction(world.id):
        line = AuditEntry.objects.get(verb="tenant.change")
    assert (line.platform, line.principal, line.reason) == (True, None, "grown")
    entry = PlatformEntry.objects.get(verb="tenant.change", object=f"tenant:{world.id}")
    assert entry.person_id == platform.person.id
    assert entry.key is not None
    assert entry.before == {"tier": "standard", "highest_autonomy_tier": 6}
    assert entry.after == {"slug": slug, "tier": "enterprise", "highest_autonomy_tier": 3}


@proves("R-GRAPH-9", part="no run is admitted above what was set by program")
def test_run_above_the_highest_autonomy_is_refused_until_it_is_raised(
    platform: Platform, world: World
) -> None:
    slug, theirs = world.house.tenant.slug, program(world.id, Role.CLIENT)
    task = {"workflow": "tool-loop", "goal": {"objective": "How much is 1 + 1?"}}
    going = world.submit("tool-loop", "How much is 2 + 2?")
    for tier, wanted in ((5, (403, "tier-too-high")), (6, (202, ""))):
        change = {"highest_autonomy_tier": tier, "reason": "decided"}
        assert platform.program.send("patch", f"/tenants/{slug}", change).status_code == 200
        answer = theirs.post("/tasks", task)
        assert (answer.status_code, answer.json().get("code", "")) == wanted
        with tenant_transaction(world.id):
            assert Run.objects.count() == 1 + (tier == 6)
    # What was admitted before goes on.
    assert world.drive(going).terminal_code == "SUCCESS"


@proves("R-SEC-10", part="suspend and resume by program")
def test_suspended_tenant_refuses_its_programs_until_it_is_resumed(platform: Platform, world: World) -> None:
    slug, theirs = world.house.tenant.slug, program(world.id, Role.OPERATOR)
    world.submit("tool-loop", "How much is 1 + 1?")
    assert platform.program.get(f"/tenants/{slug}").json()["runs_to_pause"] == 1
    assert platform.program.post(f"/tenants/{slug}/suspend", {}).status_code == 400
    answer = platform.program.post(f"/tenants/{slug}/suspend", {"reason": "unpaid"}, once="s")
    assert answer.json()["suspended_reason"] == "unpaid"
    assert refusal(theirs.get("/runs")) == (403, "tenant-suspended")
    again = platform.program.post(f"/tenants/{slug}/suspend", {"reason": "unpaid"}, once="s")
    assert again["Idempotent-Replay"] == "true"
    assert platform.program.post(f"/tenants/{slug}/resume", {"reason": "paid"}).json()["suspended_at"] is None
    assert theirs.get("/runs").status_code == 200
    told = words(browser(world.people.admin).get("/tenant/audit"))
    assert "tenant.suspend" in told
    assert "the platform administrator" in told


@proves("R-SEC-10", part="a first administrator is invited again by program")
def test_first_administrator_is_invited_again_while_none_has_signed_in(platform: Platform) -> None:
    asked = body()
    platform.program.post("/tenants", asked)
    where = f"/tenants/{asked['slug']}/administrator"
    same = platform.program.post(where, {"email": asked["administrator"], "name": "Ada"})
    assert (same.status_code, same.json()["delivery"]) == (200, "shown")
    other = platform.program.post(where, {"email": f"bob@{asked['slug']}.example", "name": "Bob"})
    assert other.json()["delivery"] == "shown"
    shown = platform.program.get(f"/tenants/{asked['slug']}").json()
    assert shown["administrators_waiting"] == 2
    assert shown["first_administrator"] == f"bob@{asked['slug']}.example"
    with tenant_transaction(Tenant.objects.get(slug=asked["slug"]).id):
        Membership.objects.get(person__email=asked["administrator"])


@proves("R-SEC-10", part="an administrator who has signed in invites the next one")
def test_first_administrator_is_not_invited_once_one_has_signed_in(platform: Platform, world: World) -> None:
    person = world.people.admin.person
    person.set_password("correct horse battery staple")
    person.save(update_fields=["password"])
    where = f"/tenants/{world.house.tenant.slug}/administrator"
    answer = platform.program.post(where, {"email": "eve@people.example", "name": "Eve"})
    assert refusal(answer) == (409, "administrator-there")


@proves("R-SEC-10", part="list by program")
def test_tenants_are_listed_in_pages(platform: Platform, world: World) -> None:
    slugs = [platform.program.post("/tenants", body()).json()["tenant"]["slug"] for _ in range(2)]
    first = platform.program.get("/tenants", {"limit": 1}).json()
    assert [row["slug"] for row in first["results"]] == slugs[1:]
    assert first["results"][0]["administrators_waiting"] == 1
    second = platform.program.get(first["next"]).json()
    assert [row["slug"] for row in second["results"]] == slugs[:1]
    assert "first_administrator" not in second["results"][0]


@proves("R-SEC-10", part="a platform administrator's key opens nothing in a tenant")
def test_key_of_the_platform_opens_no_door_of_a_tenant(platform: Platform, world: World) -> None:
    names = {name: "x" for _, address in DOORS for name in re.findall(r"{(\w+)}", address)} | {
        "role": "admin"
    }
    for (method, address), scope in DOORS.items():
        if scope is None:
            continue
        answer = platform.program.send(method, path_of(address, names), {})
        assert refusal(answer) == (403, "scope-missing"), (method, address)
    with tenant_transaction(world.id):
        assert not Run.objects.exists()


@proves("R-SEC-10", part="no key of a tenant opens a door of the platform")
def test_key_of_a_tenant_opens_no_door_of_the_platform(platform: Platform, world: World) -> None:
    slug = world.house.tenant.slug
    for method, address in PLATFORM_DOORS:
        path = path_of(address, {"tenant_slug": slug})
        assert refusal(Program().send(method, path, {}))[0] == 401
        for role in Role:
            answer = program(world.id, role).send(method, path, body(reason="mine"))
            assert refusal(answer) == (403, "scope-missing"), (role, address)
    assert Tenant.objects.get(id=world.id).suspended_at is None
    assert not PlatformEntry.objects.filter(object=f"tenant:{world.id}").exists()


def test_unknown_tenant_is_404_at_every_door(platform: Platform) -> None:
    for method, address in PLATFORM_DOORS:
        if "{" in address:
            given = {"reason": "r", "email": "a@people.example", "name": "A"}
            wanted = {"suspend": ("reason",), "resume": ("reason",), "administrator": ("email", "name")}
            said = {name: given[name] for name in wanted.get(address.rpartition("/")[2], ("reason",))}
            answer = platform.program.send(
                method, path_of(address, {"tenant_slug": "nobodys"}), said if method != "get" else None
            )
            assert refusal(answer) == (404, "not-found"), (method, address)


@proves("R-SEC-10", part="keys of the platform end and are rated")
def test_forged_or_ended_key_of_the_platform_is_401(
    platform: Platform, servers: TestServers, superuser: Any
) -> None:
    clear = platform.program.clear
    forged = clear[:-20] + ("a" if clear[-20] != "a" else "b") + clear[-19:]
    assert refusal(Program(clear=forged).get("/tenants")) == (401, "key-invalid")
    with owner_connection(servers):
        key = create_platform_key(platform.person, label="old", using=OWNER)
    superuser.execute(
        "UPDATE tenancy_platformkey SET expires_at = now() - interval '1 second' WHERE id = %s", (key.key.id,)
    )
    assert refusal(Program(clear=key.clear).get("/tenants")) == (401, "key-expired")

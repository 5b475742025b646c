"""`manage.py tenant`: a tenant of one's own, opened, changed, suspended and resumed (R-SEC-10)."""

import re
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.test import Client

from orchestrator.policies.queries.boundaries import boundaries_now
from orchestrator.publishing.models import BoundaryVersion, RegistryVersion, WorkflowVersion
from orchestrator.runs.actions.run_signals import resume
from orchestrator.runs.models.run import Run
from tenancy.core.errors import TenantSuspended
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership, PersonTie, Tenant
from tenancy.web.connection_auth import Presence, look_again
from tests.conftest import House
from tests.doors.api.program import program
from tests.doors.pages.browsers import browser, words
from tests.doubles.company import Company
from tests.factories.world import World
from tests.journeys.conftest import world as world
from tests.journeys.test_refund import at_the_gate
from tests.proves import proves


def typed(*told: str) -> str:
    """What the command prints."""
    out = StringIO()
    call_command("tenant", *told, stdout=out)
    return out.getvalue()


@pytest.fixture
def slug(house: House) -> str:
    """A name that no tenant has."""
    return f"acme-{fresh_id().hex[-12:]}"


def opened(slug: str, *more: str) -> str:
    """Open a tenant; what is printed."""
    return typed("create", slug, "--name", "Acme", "--admin", f"ada@{slug}.example", *more)


def row_of(slug: str) -> Tenant:
    """The tenant."""
    return Tenant.objects.get(slug=slug)


@proves("R-SEC-10", part="create")
def test_tenant_create_opens_a_tenant_without_the_demonstration(slug: str) -> None:
    told = opened(slug, "--time-zone", "Europe/Zurich", "--tier", "trial", "--autonomy", "4")
    row = row_of(slug)
    assert (row.name, row.time_zone, row.tier, row.highest_autonomy_tier) == (
        "Acme", "Europe/Zurich", "trial", 4,
    )  # fmt: skip
    with tenant_transaction(row.id):
        (member,) = Membership.objects.select_related("person")
        assert (member.role, member.person.email) == ("admin", f"ada@{slug}.example")
        assert [one.slug for one in WorkflowVersion.objects.all()] == ["tool-loop"]
        (registry,) = RegistryVersion.objects.all()
        assert "web.fetch" in registry.tools
        assert not [name for name in registry.tools if name.startswith(("orders.", "payments.", "mail."))]
        assert BoundaryVersion.objects.filter(slug="tool-loop-default").exists()
        assert not PersonTie.objects.exists()
    assert f"ada@{slug}.example" in told


@proves("R-SEC-10", part="the first administrator sets a password and signs in")
def test_first_administrator_signs_in_by_the_printed_link(slug: str) -> None:
    (path,) = re.findall(r"http://[^/]+(/account/\S+)", opened(slug))
    client = Client()
    page = client.get(path, follow=True)
    assert page.status_code == 200
    where = page.redirect_chain[-1][0] if page.redirect_chain else path
    password = "correct horse battery staple"
    client.post(where, {"password1": password, "password2": password})
    client.post("/account/login/", {"login": f"ada@{slug}.example", "password": password})
    people = client.get("/tenant/people")
    assert people.status_code == 200
    assert "Add a person" in words(people)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        (("--time-zone", "Mars/Olympus"), "time_zone"),
        (("--tier", "gold"), "tier"),
        (("--autonomy", "8"), "highest_autonomy_tier"),
        (("--name", " "), "name"),
    ],
)
def test_tenant_create_with_a_wrong_value_names_the_field_and_makes_nothing(
    slug: str, more: tuple[str, str], field: str
) -> None:
    with pytest.raises(CommandError, match=f"^{field}: "):
        opened(slug, *more)
    assert not Tenant.objects.filter(slug=slug).exists()


def test_tenant_create_with_a_slug_that_is_taken_or_none_is_refused(slug: str) -> None:
    opened(slug)
    with pytest.raises(CommandError, match=r"^slug: There is a tenant"):
        opened(slug)
    with pytest.raises(CommandError, match=r"^slug: 1 to 50"):
        opened("Not A Slug")


@proves("R-SEC-10", part="update and list")
def test_tenant_update_changes_what_is_said_and_is_audited(slug: str) -> None:
    opened(slug)
    typed("update", slug, "--tier", "enterprise", "--time-zone", "Asia/Tokyo", "--reason", "grown")
    row = row_of(slug)
    assert (row.tier, row.time_zone, row.name) == ("enterprise", "Asia/Tokyo", "Acme")
    with tenant_transaction(row.id):
        entry = AuditEntry.objects.get(verb="tenant.change")
    assert (entry.before, entry.after, entry.reason) == (
        {"tier": "standard", "time_zone": "UTC"}, {"tier": "enterprise", "time_zone": "Asia/Tokyo"}, "grown",
    )  # fmt: skip
    assert f"{slug}  Acme  Asia/Tokyo  enterprise  autonomy 6  active" in typed("list")
    with pytest.raises(CommandError, match="say what to change"):
        typed("update", slug)
    with pytest.raises(CommandError, match="no tenant"):
        typed("update", "nobody-here", "--name", "x")


@pytest.fixture
def suspended(world: World, company: Company) -> UUID:
    """A run that waits at its gate in a tenant that is suspended then."""
    run, _ = at_the_gate(world)
    told = typed("suspend", world.house.tenant.slug, "--reason", "unpaid bill")
    assert told == "suspended; 1 runs pause\n"
    return run


@proves("R-SEC-10", part="nobody acts in a suspended tenant")
def test_suspended_tenant_refuses_people_keys_and_followers(world: World, company: Company) -> None:
    client = program(world.id, Role.CLIENT)
    assert client.get("/runs").status_code == 200
    key = Presence(tenant=world.id, principal=world.people.submitter.id, scopes=())
    typed("suspend", world.house.tenant.slug, "--reason", "unpaid bill")
    page = browser(world.people.approver).get("/runs")
    assert page.status_code == 403
    assert "This tenant is suspended: unpaid bill" in words(page)
    answer = client.get("/runs")
    assert (answer.status_code, answer.json()["code"]) == (403, "tenant-suspended")
    with pytest.raises(TenantSuspended):
        look_again(key)
    typed("resume", world.house.tenant.slug)
    assert client.get("/runs").status_code == 200
    assert look_again(key).principal == world.people.submitter.id


@proves("R-SEC-10", part="runs of a suspended tenant pause, and go on after it")
def test_runs_of_a_suspended_tenant_pause_and_go_on_when_an_operator_resumes_them(
    world: World, company: Company, suspended: UUID
) -> None:
    assert world.drive(suspended).status == "paused"
    with pytest.raises(TenantSuspended):
        world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    with tenant_transaction(world.id):
        assert Run.objects.count() == 1
    with pytest.raises(CommandError, match="suspended already"):
        typed("suspend", world.house.tenant.slug, "--reason", "again")
    typed("resume", world.house.tenant.slug)
    with pytest.raises(CommandError, match="not suspended"):
        typed("resume", world.house.tenant.slug)
    assert browser(world.people.approver).get("/runs").status_code == 200
    resume(world.id, suspended, by=world.people.operator.principal.id, reason="paid")
    assert world.approve_all(suspended).terminal_code == "SUCCESS"


@proves("R-SEC-10", part="the database refuses a run in a suspended tenant")
def test_insert_of_a_run_in_a_suspended_tenant_is_refused_by_the_database(
    world: World, suspended: UUID
) -> None:
    with tenant_transaction(world.id):
        row = Run.objects.get(id=suspended)
        row.id = fresh_id()
        with pytest.raises(DatabaseError, match="the tenant is suspended"), transaction.atomic():
            row.save(force_insert=True)


@proves("R-SEC-10", part="a new tenant's boundaries name tools that it has")
def test_new_tenant_has_boundaries_that_name_no_absent_tool(slug: str) -> None:
    opened(slug)
    with tenant_transaction(row_of(slug).id):
        tools = RegistryVersion.objects.get().tools
        found = boundaries_now()
        assert [one.row.slug for one in found] == [
            "coding", "procurement", "research", "sre", "support", "tool-loop-default",
        ]  # fmt: skip
        grants = [grant for one in found for grant in one.boundary.tools]
        assert [grant.name for grant in grants if not any(map(grant.covers, tools))] == []
        assert next(one for one in found if one.workflows).workflows == ("tool-loop",)

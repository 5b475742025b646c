"""Retiring versions of boundaries: by program, by page and by command (R-GRAPH-11)."""

from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client

from orchestrator.policies.actions.boundaries import retire_boundary
from orchestrator.policies.queries.boundaries import boundary_in, newest_boundary
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.actions.versions import publish_boundary
from orchestrator.publishing.models import BoundaryVersion
from orchestrator.runs.models.run import Run
from tenancy.core.roles import Role
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry
from tests.doors.api.program import Program, program, refusal
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import at, text
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

SLUG = "tool-loop-default"
DOOR = f"/boundaries/{SLUG}"
PAGE = f"/boundaries/{SLUG}"
TASK = {"workflow": "tool-loop", "goal": {"objective": "How much is 1 + 1?"}}


def narrow(world: World) -> int:
    """Publish a narrower version of the boundary; its number."""
    with tenant_transaction(world.id):
        now = newest_boundary(SLUG)
        assert now is not None
        held = boundary_in(now)
        return publish_boundary(world.id, held.evolve(refusal_limit=held.refusal_limit - 1), by=None).version


def in_force(world: World) -> int | None:
    """The version that new runs get."""
    with tenant_transaction(world.id):
        now = newest_boundary(SLUG)
        return None if now is None else now.version


@proves("R-GRAPH-11", part="retired by program")
def test_retired_boundary_is_no_longer_offered_and_its_runs_go_on(admin: Program, world: World) -> None:
    run = world.submit("tool-loop", "How much is 1 + 1?")
    path = f"{DOOR}/versions/1/retire"
    assert admin.post(path, {}).status_code == 400
    first = admin.post(path, {"reason": "Too wide"})
    assert first.status_code == 200, first.json()
    assert first.json()["retired_at"] == admin.post(path, {"reason": "Too wide"}).json()["retired_at"]
    assert refusal(admin.get(DOOR)) == (404, "not-found")
    assert SLUG not in [row["slug"] for row in admin.get("/boundaries").json()["results"]]
    (row,) = admin.get(f"{DOOR}/versions").json()["results"]
    assert row["retired_at"] == first.json()["retired_at"]
    refused = program(world.id, Role.CLIENT).post("/tasks", TASK)
    assert refusal(refused)[1] == "goal-invalid"
    assert f"there is no boundary {SLUG}" in refused.json()["detail"]
    assert world.drive(run).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        line = AuditEntry.objects.get(verb="boundary.retire")
        assert (line.reason, line.after) == ("Too wide", {"version": 1, "retired": True})
        assert Run.objects.count() == 1
    for wrong in ("2", "x", "-1", "9" * 30):
        answer = admin.post(f"{DOOR}/versions/{wrong}/retire", {"reason": "?"})
        assert refusal(answer)[0] == 404


@proves("R-GRAPH-11", part="a version that leaves a wider one waits for a second administrator")
def test_retiring_that_leaves_a_wider_version_waits_for_a_second_administrator(world: World) -> None:
    first, second = (program(world.id, Role.ADMIN, owner=one.person) for one in two_admins(world))
    assert narrow(world) == 2
    asked = first.post(f"{DOOR}/versions/2/retire", {"reason": "It refuses too soon"})
    assert asked.status_code == 202, asked.json()
    assert asked.json()["weaker"]
    assert in_force(world) == 2
    agree = f"/tool-proposals/{asked.json()['id']}/agree"
    assert refusal(first.post(agree, {"reason": "Mine"})) == (403, "own-proposal")
    agreed = second.post(agree, {"reason": "Yes"})
    assert agreed.status_code == 200, agreed.json()
    assert agreed.json()["retired_at"] is not None
    assert in_force(world) == 1
    with tenant_transaction(world.id):
        line = AuditEntry.objects.get(verb="boundary.retire")
    assert line.after["weaker"]
    assert line.after["proposed_by"]


@proves("R-GRAPH-11", part="nobody agrees to another version than was shown")
def test_retirement_that_waits_is_outdated_when_another_version_would_be_left(world: World) -> None:
    first, second = (program(world.id, Role.ADMIN, owner=one.person) for one in two_admins(world))
    assert (narrow(world), narrow(world)) == (2, 3)
    asked = first.post(f"{DOOR}/versions/3/retire", {"reason": "It refuses too soon"})
    assert asked.status_code == 202
    # Version 2 is not in force, so that its retirement lets no run do more by itself.
    assert first.post(f"{DOOR}/versions/2/retire", {"reason": "Nobody uses it"}).status_code == 200
    late = second.post(f"/tool-proposals/{asked.json()['id']}/agree", {"reason": "Yes"})
    assert refusal(late)[0] in (409, 412)
    assert in_force(world) == 3


def test_version_that_is_not_in_force_is_retired_at_once(admin: Program, world: World) -> None:
    two_admins(world)
    assert narrow(world) == 2
    assert admin.post(f"{DOOR}/versions/1/retire", {"reason": "Old"}).status_code == 200
    assert in_force(world) == 2


@proves("R-GRAPH-11", part="a boundary that is retired is published again as a new one")
def test_boundary_that_is_retired_wholly_is_published_again_with_the_next_number(world: World) -> None:
    first, _ = (program(world.id, Role.ADMIN, owner=one.person) for one in two_admins(world))
    document = first.get(DOOR).json()["document"]
    assert first.post(f"{DOOR}/versions/1/retire", {"reason": "Old"}).status_code == 200
    again = first.post("/boundaries", {"document": document, "reason": "Back"})
    # It lets runs do more than nothing.
    assert again.status_code == 202, again.json()
    assert in_force(world) is None


@proves("R-GRAPH-11", part="retired by the page")
def test_version_is_retired_on_the_page(world: World) -> None:
    client = at(world.people.admin)
    assert narrow(world) == 2
    page = text(client.get(PAGE))
    assert "New runs get version 1." in page
    assert "It lets runs do more" in page
    unsaid = client.post(f"{PAGE}/2/retire", {"reason": " "}, follow=True)
    assert "Say why" in text(unsaid)
    assert in_force(world) == 2
    done = client.post(f"{PAGE}/2/retire", {"reason": "It refuses too soon"}, follow=True)
    assert "version 2 is retired. Its runs go on." in text(done)
    assert in_force(world) == 1
    assert "This version was retired" in text(client.get(f"{PAGE}?version=2"))
    client.post(f"{PAGE}/1/retire", {"reason": "Old"})
    assert "No version of the boundary is in force" in text(client.get(PAGE))
    assert "Retired" in text(client.get("/boundaries"))


@proves("R-GRAPH-11", part="a retirement on the page waits for a second administrator")
def test_retirement_on_the_page_waits_and_is_agreed_to(world: World) -> None:
    first, second = (at(one) for one in two_admins(world))
    assert narrow(world) == 2
    asked = first.post(f"{PAGE}/2/retire", {"reason": "It refuses too soon"})
    assert asked["Location"] == "/tool-proposals"
    page = second.get("/tool-proposals")
    assert "/refusal_limit" in text(page)
    form_with(page, "agree").send(second, "agree", reason="Yes.")
    assert f"Version 2 of the boundary {SLUG} is retired." in text(second.get("/tool-proposals"))
    assert in_force(world) == 1


def test_whoever_is_no_administrator_retires_no_boundary(world: World) -> None:
    operator: Client = at(world.people.operator)
    assert operator.post(f"{PAGE}/1/retire", {"reason": "?"}).status_code == 403
    assert in_force(world) == 1


@proves("R-GRAPH-11", part="retired by command")
def test_version_is_retired_by_command(world: World) -> None:
    def typed(*told: str) -> str:
        out = StringIO()
        call_command("boundary", *told, "--tenant", world.house.tenant.slug, stdout=out)
        return out.getvalue()

    assert typed("retire", SLUG, "--number", "1", "--reason", "Old") == f"{SLUG} v1 retired\n"
    assert f"{SLUG}  v1  retired" in typed("list")
    assert f"slug: {SLUG}" in typed("show", SLUG)
    with pytest.raises(CommandError, match="no boundary"):
        typed("retire", SLUG, "--number", "7", "--reason", "Old")


@proves("R-GRAPH-11", part="the database lets a version be retired and nothing else")
def test_published_boundary_is_retired_and_otherwise_never_changed(
    world: World, superuser: psycopg.Connection[Any]
) -> None:
    denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="denied")
    with tenant_transaction(world.id), denied, transaction.atomic():
        raw_cursor().execute(b"UPDATE orchestrator_boundaryversion SET body = ''")
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="can only be retired"):
        superuser.execute(
            "UPDATE orchestrator_boundaryversion SET body = '' WHERE tenant_id = %s", (world.id,)
        )
    with tenant_transaction(world.id):
        assert BoundaryVersion.objects.filter(slug=SLUG).count() == 1


@proves("R-GRAPH-11", part="a start publishes no boundary over what came after it")
def test_furnishing_again_brings_back_no_boundary_that_was_narrowed_or_retired(world: World) -> None:
    with tenant_transaction(world.id):
        seed_tenant(world.id)
        before = in_force(world)
        assert narrow(world) == (before or 0) + 1
        seed_tenant(world.id)
        assert in_force(world) == (before or 0) + 1
        retire_boundary(world.id, "research", 1, by=None, reason="Old")
        seed_tenant(world.id)
        assert newest_boundary("research") is None


def two_admins(world: World) -> tuple[Any, Any]:
    """The administrator, and another one who is related to nobody."""
    return world.people.admin, make_somebody(world.house.tenant, Role.ADMIN)

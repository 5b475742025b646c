"""A tool that answers in another form than its own: marked for administrators, until somebody has looked
(R-TOOL-14)."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from orchestrator.publishing.actions.versions import active_tools, publish_tools
from orchestrator.tools.actions.schema_drift import clear_drift
from orchestrator.tools.queries.tools import ToolNow, tool_now
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.conftest import House
from tests.doors.pages.people import at, text
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

TOOL = "orders.lookup"
ODD: dict[str, object] = {
    "type": "object",
    "required": ["number"],
    "properties": {"number": {"type": "string"}},
}


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house, in which an order is declared otherwise than the company tells it."""
    with company_at(company.url):
        found = make_world(house)
        publish(found, ODD)
        yield found


def publish(world: World, form: dict[str, object]) -> None:
    with tenant_transaction(world.id):
        tools = active_tools()
        changed = tools | {TOOL: tools[TOOL].evolve(output_schema=form)}
        publish_tools(world.id, tuple(changed.values()), by=world.people.admin.id)


def now(world: World) -> ToolNow:
    with tenant_transaction(world.id):
        return tool_now(world.id, TOOL)


def drifts(world: World) -> UUID:
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    assert world.drive(run).terminal_code == "VALIDATION_FAIL"
    world.sound(run)
    return run


@proves("R-TOOL-14", part="the tool is flagged, and the flag is cleared")
def test_the_tool_is_marked_once_and_cleared_by_whoever_looked(world: World) -> None:
    run = drifts(world)
    drifts(world)
    mark = now(world).drift_mark
    assert mark is not None
    assert str(run) in mark.reason
    assert now(world).emergency_stop is None
    admin = at(world.people.admin)
    assert "An answer did not fit" in text(admin.get(f"/tools/{TOOL}"))
    assert "Answers otherwise" in text(admin.get("/tools"))
    assert admin.post(f"/tools/{TOOL}", {"drift": "clear", "reason": ""}).status_code == 422
    assert (
        at(world.people.auditor).post(f"/tools/{TOOL}", {"drift": "clear", "reason": "x"}).status_code == 403
    )
    assert admin.post(f"/tools/{TOOL}", {"drift": "clear", "reason": "Theirs"}).status_code == 302
    assert now(world).drift_mark is None
    with pytest.raises(NotFound):
        clear_drift(world.id, TOOL, by=world.people.admin.id, reason="Twice")
    with tenant_transaction(world.id):
        verbs = list(
            AuditEntry.objects.filter(object=f"tool:{TOOL}").order_by("id").values_list("verb", flat=True)
        )
    assert verbs == ["tool.drifted", "tool.drift_cleared"]


@proves("R-TOOL-14", part="a new version clears the flag")
def test_a_new_version_takes_the_mark_off(world: World) -> None:
    drifts(world)
    publish(world, {"type": "object"})
    assert now(world).drift_mark is None

"""A change of a tool: a new version for runs to come, and what is stricter holds at the next call of those
under way (R-TOOL-4)."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from orchestrator import bundled_content
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.core.tools.tool_update import ToolChange, asked_change
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.actions.versions import active_tools, publish_boundary
from orchestrator.publishing.models import RegistryVersion, ToolVersion
from orchestrator.runs.actions.emergency_stop import stop_everything
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.tools.actions.tool_updates import change_tool
from orchestrator.tools.queries.tools import (
    ToolNow,
    count_tool_use,
    tool_now,
    tools_now,
    used_by,
    versions_of,
)
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
CALCULATOR = "calculator.evaluate"


@pytest.fixture
def shop(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


def change(
    world: World, name: str, *, reason: str = "because", expected: str | None = None, **given: Any
) -> ToolNow:
    """What the admin changes."""
    return change_tool(
        world.id, name, asked_change(dict(given)), by=world.people.admin.id, reason=reason, expected=expected
    )


def allow_more(world: World) -> None:
    """A boundary under which the calculator may be more than read-only, and may change something."""
    boundary = bundled_content.load_bundled_boundaries()["tool-loop-default"]
    tools = tuple(grant.evolve(risk_ceiling=Risk.NETWORK) for grant in boundary.tools)
    budget = {**boundary.budget, "side_effects": Decimal(9)}
    with tenant_transaction(world.id):
        publish_boundary(
            world.id, boundary.evolve(tools=tools, risk_ceiling=Risk.NETWORK, budget=budget), by=None
        )


def now(world: World, name: str = CALCULATOR) -> ToolNow:
    """The tool as it stands."""
    with tenant_transaction(world.id):
        return tool_now(world.id, name)


def audits(world: World) -> list[AuditEntry]:
    """What was noted of changed tools, oldest first."""
    with tenant_transaction(world.id):
        return list(AuditEntry.objects.filter(verb="tool.change").order_by("at"))


@proves("R-TOOL-4", part="a change makes a new version")
def test_a_change_makes_a_new_version_and_the_old_one_stands(world: World) -> None:
    changed = change(world, CALCULATOR, price_usd="0.25", rate_per_minute=7, scopes=["submit"])
    assert (changed.spec.version, changed.spec.price_usd, changed.spec.scopes) == (
        2,
        Decimal("0.25"),
        ("submit",),
    )
    with tenant_transaction(world.id):
        assert [v.spec.version for v in versions_of(CALCULATOR)] == [2, 1]
        assert versions_of(CALCULATOR)[1].spec.rate_per_minute == 6_000
        assert active_tools()[CALCULATOR].version == 2


@proves("R-TOOL-4", part="audited with before, after, reason")
@proves("R-SEC-6", part="tools")
def test_a_change_is_audited_with_what_was_and_what_is(world: World) -> None:
    change(world, CALCULATOR, price_usd="0.25", reason="It costs now")
    (entry,) = audits(world)
    assert (entry.principal, entry.object, entry.reason) == (
        world.people.admin.id, f"tool:{CALCULATOR}", "It costs now",
    )  # fmt: skip
    assert entry.before == {"version": 1, "price_usd": "0"}
    assert entry.after == {"version": 2, "price_usd": "0.25"}


def test_the_same_again_changes_nothing(world: World) -> None:
    first = change(world, CALCULATOR, price_usd="0.25")
    assert change(world, CALCULATOR, price_usd="0.25").tag == first.tag
    with tenant_transaction(world.id):
        assert (ToolVersion.objects.filter(slug=CALCULATOR).count(), len(audits(world))) == (2, 1)


def test_a_change_of_what_was_changed_meanwhile_is_refused(world: World) -> None:
    seen = now(world).tag
    change(world, CALCULATOR, price_usd="0.25", expected=seen)
    with pytest.raises(Stale):
        change(world, CALCULATOR, price_usd="0.50", expected=seen)


def test_a_change_names_a_tool_and_fields_that_there_are(world: World) -> None:
    with pytest.raises(NotFound):
        change(world, "no.such", price_usd="0.25")
    with pytest.raises(InvalidInput):
        asked_change({"name": "mine"})


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("payments.refund", {"risk": "read_only"}),
        ("payments.refund", {"approval": "never"}),
        ("mail.send", {"approval": "never"}),
        (CALCULATOR, {"risk": "network", "approval": "never"}),
    ],
)
def test_nobody_may_open_a_gate_that_is_always_shut(world: World, tool: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        change(world, tool, **given)
    assert now(world, tool).spec.version == 1
    assert audits(world) == []


@proves("R-TOOL-4", part="a run keeps the version it is pinned to")
def test_a_run_keeps_its_version_when_the_change_is_not_stricter(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    change(world, CALCULATOR, price_usd="0.50", rate_per_minute=1)
    assert world.drive(run).terminal_code == "SUCCESS"
    attempts = world.said(run, "call_attempted")
    with tenant_transaction(world.id):
        first = ToolVersion.objects.get(slug=CALCULATOR, version=1)
    assert {attempt["tool_version"] for attempt in attempts} >= {first.digest}
    assert len({attempt["tool_version"] for attempt in attempts if attempt["tool"] == CALCULATOR}) == 1
    world.sound(run)


@proves("R-TOOL-4", part="a raised risk gates the next call of a run under way")
def test_a_raised_risk_asks_a_person_in_a_run_that_is_pinned_below_it(world: World) -> None:
    allow_more(world)
    run = world.submit("tool-loop", SUM)
    change(world, CALCULATOR, risk="local_write", reason="Somebody found a hole")
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    assert (request.tool, request.risk) == (CALCULATOR, "local_write")
    checked = [said for said in world.said(run, "call_checked") if said["step"] == "risk"]
    assert {(said["rule"], said["detail"]) for said in checked} == {
        ("local_write", "raised from read_only by an admin")
    }
    assert world.approve_all(run).terminal_code == "SUCCESS"
    world.sound(run)


@proves("R-TOOL-4", part="a class above the ceiling closes the tool to a run under way")
def test_a_risk_raised_above_the_boundary_is_denied(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    change(world, CALCULATOR, risk="destructive")
    world.drive(run)
    denied = [said for said in world.said(run, "call_checked") if said["decision"] == "deny"]
    assert {said["rule"] for said in denied} == {"boundary_allow_list"}
    assert world.said(run, "call_attempted") == []
    world.sound(run)


def test_a_run_admitted_after_the_change_follows_its_own_version(world: World) -> None:
    allow_more(world)
    change(world, CALCULATOR, risk="local_write")
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).terminal_code == "SUCCESS"


def test_a_class_that_is_lowered_again_lets_the_older_runs_go_on(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    change(world, CALCULATOR, risk="local_write")
    change(world, CALCULATOR, risk="read_only")
    assert world.drive(run).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        assert not EmergencyStop.objects.filter(tenant_id=world.id, lifted_at=None).exists()


@proves("R-TOOL-4", part="a lower class waits for runs to come")
def test_a_lowered_class_does_not_open_a_run_that_is_pinned_above_it(shop: World) -> None:
    run = shop.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    before = now(shop, "payments.refund").spec
    change(shop, "payments.refund", risk="local_write")
    assert shop.drive(run).status == "awaiting_gate"
    (request,) = shop.open_requests(run)
    assert request.risk == before.risk.value


@proves("R-TOOL-4", part="a disabled tool takes no further call")
def test_a_disabled_tool_is_closed_to_running_runs_and_gone_for_new_ones(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    disabled = change(world, CALCULATOR, enabled=False, reason="It lies")
    assert (disabled.enabled, disabled.emergency_stop is not None) == (False, True)
    world.drive(run)
    assert world.said(run, "call_attempted") == []
    with tenant_transaction(world.id):
        assert CALCULATOR not in active_tools()
    (entry,) = audits(world)
    assert (entry.before["enabled"], entry.after["enabled"]) == (True, False)
    world.sound(run)


def test_a_tool_that_is_enabled_again_takes_calls_again(world: World) -> None:
    change(world, CALCULATOR, enabled=False)
    change(world, CALCULATOR, price_usd="0.01")
    enabled = change(world, CALCULATOR, enabled=True)
    assert (enabled.enabled, enabled.emergency_stop, enabled.spec.version) == (True, None, 2)
    with tenant_transaction(world.id):
        assert active_tools()[CALCULATOR].price_usd == Decimal("0.01")
    assert world.drive(world.submit("tool-loop", SUM)).terminal_code == "SUCCESS"


def test_enabling_a_tool_leaves_an_operators_own_stop_in_force(world: World) -> None:
    stop_everything("tool", tenant_id=world.id, target=CALCULATOR, by=None, reason="an incident")
    change(world, CALCULATOR, enabled=False)
    stopped = change(world, CALCULATOR, enabled=True).emergency_stop
    assert stopped is not None
    assert stopped.reason == "an incident"


@proves("R-TOOL-4", part="settings outlive a start")
def test_what_an_admin_set_outlives_a_seeding(world: World) -> None:
    change(world, CALCULATOR, price_usd="0.25")
    change(world, "clock.now", enabled=False)
    with tenant_transaction(world.id):
        before = RegistryVersion.objects.order_by("-version").values_list("version", flat=True)[0]
    seed_tenant(world.id)
    with tenant_transaction(world.id):
        assert RegistryVersion.objects.order_by("-version").values_list("version", flat=True)[0] == before
        assert active_tools()[CALCULATOR].price_usd == Decimal("0.25")
        assert "clock.now" not in active_tools()
        names = {tool.spec.name: tool.enabled for tool in tools_now(world.id)}
    assert (names[CALCULATOR], names["clock.now"]) == (True, False)


def test_another_tenants_tool_is_not_there(world: World) -> None:
    with tenant_transaction(world.people.other_tenant.id), pytest.raises(NotFound):
        tool_now(world.people.other_tenant.id, CALCULATOR)


def test_use_counts_calls_and_failures_of_the_week(world: World) -> None:
    world.drive(world.submit("tool-loop", SUM))
    with tenant_transaction(world.id):
        counted = count_tool_use(world.id, database_now())
        users = used_by()
    assert (counted[CALCULATOR].calls, counted[CALCULATOR].failures) == (2, 0)
    assert "tool-loop" in {user.slug for user in users[CALCULATOR]}
    assert users[CALCULATOR][0].ceiling in set(Risk)


def ids(world: World) -> list[UUID]:
    """Stops in force."""
    with tenant_transaction(world.id):
        stops = EmergencyStop.objects.filter(tenant_id=world.id, lifted_at=None)
        return list(stops.values_list("id", flat=True))


def test_no_change_is_no_change(world: World) -> None:
    assert change_tool(world.id, CALCULATOR, ToolChange(), by=None, reason="none").spec.version == 1
    assert ids(world) == []

"""Where money went and how runs' figures are spread: each ended run counts once (R-BUDGET-14)."""

from datetime import timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from budgets.models import DaySpend, RunFigures
from budgets.queries.expenses import daily_by_model, get_spending, get_usage_spreads, of_month, workflows_run
from budgets.queries.tenant import largest_runs, windows_now
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.tools.actions.tool_updates import change_tool
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.world import World, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
UTC = ZoneInfo("UTC")


@pytest.fixture
def world(house: House) -> World:
    """A house in which the calculator costs something."""
    made = make_world(house)
    change_tool(made.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    return made


@proves("R-BUDGET-14", part="by workflow, model and tool")
def test_spending_by_workflow_model_and_tool_adds_up_to_the_tenants_month(world: World) -> None:
    for _ in range(2):
        world.drive(world.submit("tool-loop", SUM))
    with tenant_transaction(world.id):
        at = database_now()
        found = get_spending(*of_month(at, UTC))
        month = windows_now(at)["tenant_month"]
        days = daily_by_model(at, UTC, 30)
    assert [(share.name, share.usd) for share in found.workflows] == [("tool-loop", month.spent)]
    assert [(share.name, share.usd, share.calls) for share in found.tools] == [
        ("calculator.evaluate", Decimal("0.8"), 4),
        ("clock.now", Decimal(0), 2),
    ]
    assert found.total == month.spent
    assert month.spent == sum(share.usd for share in (*found.tools, *found.models))
    assert sum(sum(day.values()) for day in days.values()) == month.spent


@proves("R-BUDGET-14", part="each ended run once")
def test_a_run_is_noted_with_its_end_and_not_before(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    with tenant_transaction(world.id):
        assert not RunFigures.objects.exists()
    world.drive(run)
    world.drive(run)
    with tenant_transaction(world.id):
        noted = RunFigures.objects.get()
        assert (noted.id, noted.workflow, noted.terminal_code) == (run, "tool-loop", "SUCCESS")
        assert noted.cost == windows_now(database_now())["tenant_day"].spent >= Decimal("0.4")
        assert noted.cost_limit is not None
        assert noted.steps >= 1
        assert noted.tokens > 0
        assert sum(DaySpend.objects.values_list("usd", flat=True)) == noted.cost


@proves("R-BUDGET-14", part="a run that was stopped counts too")
def test_a_run_that_was_stopped_is_noted_with_its_reason(world: World) -> None:
    world.drive(world.submit("tool-loop", SUM, budget={"model_turns": 1}))
    with tenant_transaction(world.id):
        assert RunFigures.objects.get().terminal_code == "BUDGET_EXHAUSTED"


@proves("R-BUDGET-14", part="distributions per workflow")
def test_the_spread_of_a_workflow_stands_beside_its_caps(world: World) -> None:
    for _ in range(3):
        world.drive(world.submit("tool-loop", SUM))
    with tenant_transaction(world.id):
        assert workflows_run() == ["tool-loop"]
        found = get_usage_spreads("tool-loop")
        assert get_usage_spreads("no-such-workflow") == {}
    assert set(found) == {"steps", "depth", "tokens", "cost", "seconds"}
    assert (found["cost"].count, found["cost"].p50 >= Decimal("0.4")) == (3, True)
    assert found["steps"].cap is not None
    # No run opens another yet, so none is deeper than itself.
    depth = found["depth"]
    assert (depth.highest, depth.p50, depth.count) == (Decimal(0), Decimal(0), 3)
    assert found["cost"].drift is None


@proves("R-BUDGET-14", part="the dearest runs")
def test_the_dearest_runs_are_those_that_ended_today_or_are_under_way(world: World) -> None:
    ended = world.submit("tool-loop", SUM)
    world.drive(ended)
    seen: list[list[object]] = []

    def look(point: str) -> None:
        if point == "committed":
            with tenant_transaction(world.id):
                since = database_now() - timedelta(hours=1)
                seen.append([one.run for one in largest_runs(since)])

    world.worker.fault = look
    under_way = world.submit("tool-loop", SUM)
    world.drive(under_way)
    assert [ended] in seen
    assert any(set(found) == {ended, under_way} for found in seen)
    with tenant_transaction(world.id):
        since = database_now() - timedelta(hours=1)
        assert {one.workflow for one in largest_runs(since)} == {"tool-loop"}
        assert largest_runs(database_now() + timedelta(hours=1)) == []

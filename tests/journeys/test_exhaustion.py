"""A run stops before the call that it cannot pay for, never after (R-BUDGET-6)."""

from typing import Any

import pytest

from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.runs.models.run import Intent
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


def used(world: World, run: Any) -> dict[str, tuple[int, int | None]]:
    """What the run used and may use, by dimension."""
    with tenant_transaction(world.id):
        return {
            str(name): (int(line.used), None if line.limit is None else int(line.limit))
            for name, line in get_usage_lines(run).items()
        }


@proves("R-BUDGET-6", part="through a run")
@pytest.mark.parametrize(
    ("dimension", "limit", "kind", "made"),
    [
        ("model_turns", 1, "model_called", 1),
        ("tool_calls", 1, "call_attempted", 1),
        ("steps", 1, "call_attempted", 1),
        ("total_tokens", 1, "model_called", 0),
    ],
)
def test_the_next_effect_is_not_begun(house: House, dimension: str, limit: int, kind: str, made: int) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", SUM, budget={dimension: limit})
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("failed", "BUDGET_EXHAUSTED"), found.reason
    assert len(world.said(run, kind)) == made
    refused = world.said(run, "reservation_refused")
    assert [one["dimension"] for one in refused] == [dimension]
    spent, ceiling = used(world, run)[dimension]
    assert ceiling == limit
    assert spent <= limit
    with tenant_transaction(world.id):
        begun = len(world.said(run, "model_called")) + len(world.said(run, "call_attempted"))
        assert Intent.objects.filter(run_id=run).count() == begun
    assert world.result(run)["next_safe_action"]
    world.sound(run)


@proves("R-BUDGET-6", part="no time left")
def test_no_working_time_is_a_timeout(house: House) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", SUM, budget={"wall_clock_seconds": 0})
    assert world.drive(run).terminal_code == "TIMEOUT"
    assert world.said(run, "model_called") == world.said(run, "call_attempted") == []
    world.sound(run)


@proves("R-BUDGET-6", part="nothing reaches the world")
def test_a_refund_that_cannot_be_paid_for_never_reaches_the_bank(house: House, company: Company) -> None:
    with company_at(company.url):
        world = make_world(house)
        inputs = {"order_id": "A-1001"}
        run = world.submit("support-refund", "Refund the order", inputs=inputs, budget={"external_calls": 2})
        found = world.approve_all(run)
    assert found.terminal_code == "BUDGET_EXHAUSTED"
    assert company.effects() == []
    assert company.requests("payments") == []
    # No way to a refund does with two: the graph alone says so before the first.
    assert used(world, run)[Dimension.EXTERNAL_CALLS][0] == 0
    world.sound(run)

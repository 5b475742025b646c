"""A run that has spent 80 % of its cost goes on with the cheaper model, and replays the same (R-BUDGET-5)."""

from decimal import Decimal

from pytest_django import Settings

from orchestrator import bundled_content
from orchestrator.publishing.actions.versions import publish_boundary, publish_workflow
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.pages.people import at, text
from tests.factories.world import make_world
from tests.proves import proves

COUNTED = (
    "steps", "model_turns", "tool_calls", "external_calls", "input_tokens", "output_tokens", "total_tokens",
    "wall_clock_seconds",
)  # fmt: skip


@proves("R-BUDGET-5", part="through a run, replay included")
def test_most_of_the_cost_spent_the_cheaper_model_takes_over(house: House, settings: Settings) -> None:
    settings.INTERLOCK_SLICE_SECONDS = 600
    world = make_world(house)
    with tenant_transaction(world.id):
        wide = bundled_content.get_bundled_boundary("tool-loop-default").evolve(
            slug="wide", budget=dict.fromkeys(COUNTED, Decimal(10_000_000)), identical_calls=500
        )
        publish_boundary(world.id, wide, by=None)
        loop = bundled_content.get_bundled_workflow("tool-loop").evolve(
            slug="counting", boundary="wide", scenario="count", tools=("calculator.*",), budget={}
        )
        publish_workflow(world.id, loop, by=None)
    run = world.submit("counting", "Count to 200", budget={"cost_usd": "0.08"})
    found = world.drive(run)
    assert found.terminal_code == "BUDGET_EXHAUSTED", found.reason
    (passed,) = world.said(run, "cost_threshold")
    assert Decimal(passed["used"]) >= Decimal("0.064")
    assert (passed["usual"], passed["profile"]) == ("scripted", "scripted-cheaper")
    profiles = [said["profile"] for said in world.said(run, "model_called")]
    turn = profiles.index("scripted-cheaper")
    assert set(profiles[:turn]) == {"scripted"}
    assert set(profiles[turn:]) == {"scripted-cheaper"}
    assert "80 % of the cost is spent" in text(at(world.people.operator).get(f"/runs/{run}"))
    world.sound(run)

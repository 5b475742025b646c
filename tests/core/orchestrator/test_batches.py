"""Calls side by side are as many as can be made together (R-GRAPH-19, R-BUDGET-16)."""

from decimal import Decimal
from typing import Any

import pytest

from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import Headroom, Refusal
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves

ASKING = BOUNDARY.evolve(on_exhaustion="request", budget_requests=1)
DEAR = TOOLS["orders.lookup"].evolve(price_usd=Decimal("0.6"))
ENOUGH = Decimal("0.7")


def asked_for_two(room: Headroom | None = None, **limits: Any) -> Simulation:
    """A run that is asked for two dear look-ups at once."""
    run = loop(tools={**TOOLS, DEAR.name: DEAR}, boundary=ASKING, **limits)
    (effect,) = run.open.values()
    wishes = ((DEAR.name, {"id": "A-1"}), (DEAR.name, {"id": "A-2"}))
    run.feed(run.model_reply(effect, *wishes), room)  # type: ignore[arg-type]
    return run


def under_way(run: Simulation) -> int:
    """How many calls are."""
    return sum(isinstance(effect, CallTool) for effect in run.open.values())


def test_calls_that_can_be_paid_for_together_are_made_together() -> None:
    assert under_way(asked_for_two(cost_usd=2)) == 2


@proves("R-BUDGET-16", part="a batch is cut to what is left of the money")
def test_of_calls_too_dear_together_one_is_made_and_people_are_asked_about_the_rest() -> None:
    run = asked_for_two(cost_usd=1)
    assert (under_way(run), run.state.outcome) == (1, None)
    run.answer({"total": "20.00"})
    assert (run.state.frozen is not None, run.state.status) == (True, "awaiting_gate")


REFUSED = Refusal(dimension="cost_usd", limit=Decimal(9), left=ENOUGH, account="tenant_day")


@proves("R-BUDGET-9", part="a batch is cut to what the tenant has left")
@pytest.mark.parametrize(
    "room",
    [Headroom(tenant_cost=ENOUGH, tenant_limit=Decimal(9)), Headroom(refused=(REFUSED,))],
    ids=["left", "refused"],
)
def test_a_batch_is_cut_to_what_the_tenants_ceiling_leaves(room: Headroom) -> None:
    run = asked_for_two(room, cost_usd=2)
    assert (under_way(run), run.state.outcome) == (1, None)

"""The lines of a run's page: which breakers tripped, whose limits they were (R-BUDGET-12)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from budgets.models import TenantCeiling
from orchestrator.console.queries.run_summary import standing_of
from orchestrator.console.queries.tripped_breakers import TrippedBreaker, breakers_of
from orchestrator.runs.queries.runs import state_now
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


def lines(world: World, run: object) -> tuple[TrippedBreaker, ...]:
    found = world.run(run)  # type: ignore[arg-type]
    with tenant_transaction(world.id):
        return breakers_of(found)


@proves("R-BUDGET-12", part="the line of the run")
def test_a_run_out_of_turns_says_who_set_the_limit(world: World) -> None:
    run = world.submit("tool-loop", SUM, budget={"model_turns": 1})
    assert world.drive(run).terminal_code == "BUDGET_EXHAUSTED"
    (line,) = lines(world, run)
    assert (line.breaker, line.times) == ("budget_gate", 1)
    assert line.told.what == (
        "the run's limit of model turns is 1: what is left to do needs 1 at least, and 0 was left"
    )
    assert line.told.set_by.startswith("the task, as ")
    assert line.told.refused == "The next step was not started: the run could not have finished."


def test_a_gated_call_is_a_line_of_its_tool(world: World) -> None:
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    world.drive(run)
    (line,) = lines(world, run)
    assert (line.breaker, line.told.title) == ("privileged_action", "Privileged action")
    assert line.told.set_by == "tool payments.refund v1"


def ceiling(world: World, per_run: str) -> None:
    ceilings = Ceilings(per_run_usd=Decimal(per_run))
    change_ceilings(world.id, ceilings, by=world.people.admin.id, reason="a test")


@proves("R-BUDGET-12", part="whose limit it was when the run was admitted")
def test_a_ceiling_changed_since_is_not_taken_for_the_one_that_stopped_the_run(world: World) -> None:
    ceiling(world, "0.0001")
    stopped = world.submit("tool-loop", SUM)
    assert world.drive(stopped).terminal_code == "BUDGET_EXHAUSTED"
    ceiling(world, "0.0002")
    own = world.submit("tool-loop", SUM, budget={"cost_usd": "0.00015"})
    assert world.drive(own).terminal_code == "BUDGET_EXHAUSTED"
    ceiling(world, "0.00015")
    (first,), (second,) = lines(world, stopped), lines(world, own)
    assert first.told.set_by == "the tenant's ceiling for one run"
    assert second.told.set_by.startswith("the task, as ")


@proves("R-BUDGET-10", part="a stopped run names ceiling, setter and what was refused")
def test_a_run_that_a_days_ceiling_stopped_says_which_how_much_who_set_it_and_what_was_refused(
    world: World,
) -> None:
    run = world.submit("tool-loop", SUM)
    day = Ceilings(daily_usd=Decimal("0.0005"))
    admin = world.people.admin
    change_ceilings(world.id, day, by=admin.id, reason="a test")
    assert world.drive(run).terminal_code == "BUDGET_EXHAUSTED"
    found = world.run(run)
    with tenant_transaction(world.id):
        because = standing_of(found, state_now(run)).because
        (set_at,) = TenantCeiling.objects.values_list("set_at", flat=True)
    (line,) = lines(world, run)
    wanted = world.said(run, "reservation_refused")[0]["wanted"]
    assert because == (
        f"The tenant's ceiling for a day is $0.0005: the next step needed ${wanted} of cost, and $0.0005 was "
        f"left. That step was not started. It was set by {admin.principal.label} on {set_at:%Y-%m-%d}."
    )
    assert line.told.back == "It opens when its window turns, or when an administrator raises it."


def test_a_run_without_any_has_no_line(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    assert lines(world, run) == ()


def test_a_prompt_that_was_too_long_stops_the_run_and_replays_so(world: World) -> None:
    run = world.submit("tool-loop", SUM, budget={"context_tokens": 500})
    found = world.drive(run)
    assert (found.terminal_code, found.reason) == ("BUDGET_EXHAUSTED", "context_tokens")
    assert "model_called" not in world.kinds(run)
    (line,) = lines(world, run)
    assert line.told.set_by.startswith("the task, as ")
    world.sound(run)

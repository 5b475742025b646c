"""One figure for business use, beside the caps and never instead of one (R-BUDGET-1)."""

from decimal import Decimal

import pytest
from pytest_django import Settings

from budgets.core.statistics.business_cost import Rates
from budgets.queries import get_usage_lines
from config.env import Environment
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.spending.queries.business_cost import business_of
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.program import program
from tests.doors.pages.browsers import words
from tests.doors.pages.people import at
from tests.factories.world import make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


@proves("R-BUDGET-1", part="the figure where it is read")
def test_the_figure_stands_on_the_ledger_tab_and_in_the_api_with_its_parts(
    house: House, settings: Settings
) -> None:
    settings.INTERLOCK_BUSINESS_RATES = Rates(tool_call=Decimal("0.5"), human_review=Decimal(4))
    world = make_world(house)
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).status == "completed"
    with tenant_transaction(world.id):
        charged = next(line.used for name, line in get_usage_lines(run).items() if name == "cost_usd")
        found = business_of(world.run(run))
    assert {part.name: part.usd for part in found.parts} == {"charged": charged, "tool_call": Decimal("1.5")}
    said = program(world.id, Role.AUDITOR).get(f"/runs/{run}").json()["business"]
    assert Decimal(said["usd"]) == charged + Decimal("1.5")
    assert [part["what"] for part in said["parts"]] == ["charged", "tool_call"]
    page = words(at(world.people.auditor).get(f"/runs/{run}?tab=ledger"))
    assert "3 tool calls at $0.50" in page
    assert "No limit rests on this figure" in page


@proves("R-BUDGET-1", part="the figure limits nothing")
def test_a_run_goes_on_whatever_the_figure_says(house: House, settings: Settings) -> None:
    settings.INTERLOCK_BUSINESS_RATES = Rates(tool_call=Decimal(1_000_000))
    world = make_world(house)
    run = world.submit("tool-loop", SUM, budget={"cost_usd": "0.5"})
    assert world.drive(run).terminal_code == TerminalCode.SUCCESS


def test_the_rates_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_BUSINESS_RATES", '{"human_review": "4.50"}')
    assert Environment().business_rates == Rates(human_review=Decimal("4.50"))

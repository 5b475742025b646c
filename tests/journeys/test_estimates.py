"""What came of earlier runs bounds the rest of the next; one that cannot finish is stopped (R-BUDGET-4)."""

import re
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import orjson
import pytest

from budgets.core.statistics.forecast import KEPT, LEAST
from budgets.models import Line
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.llm.gateways.catalog import profiles_for
from orchestrator.runs.actions import version_pinning
from orchestrator.runs.actions.usage_learning import expected_for, learn_from, subject_of_run
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.models.usage_estimate import Expectation
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.program import program
from tests.doors.pages.people import at, text
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


@pytest.fixture
def world(house: House) -> World:
    """A furnished house."""
    return make_world(house)


def lived(world: World, runs: int) -> None:
    """So many runs of the tool loop that came to their answer and were learnt from."""
    for _ in range(runs):
        run = world.submit("tool-loop", SUM)
        assert world.drive(run).terminal_code == "SUCCESS"
        assert learn_from(run)


@proves("R-BUDGET-4")
def test_a_run_that_needs_more_than_it_has_is_stopped_before_it_spends(world: World) -> None:
    lived(world, LEAST)
    run = world.submit("tool-loop", SUM, budget={"model_turns": 1})
    found = world.drive(run)
    assert (found.terminal_code, found.reason) == ("BUDGET_EXHAUSTED", "model_turns")
    assert world.said(run, "model_called") == []
    (refused,) = world.said(run, "reservation_refused")
    assert (refused["account"], refused["wanted"], refused["left"]) == ("estimate", "3", "1")
    world.sound(run)
    assert world.drive(world.submit("tool-loop", SUM)).terminal_code == "SUCCESS"


@proves("R-BUDGET-4", part="pinned at admission")
def test_what_is_learnt_later_changes_no_run_that_was_admitted(world: World) -> None:
    run = world.submit("tool-loop", SUM, budget={"model_turns": 1})
    lived(world, LEAST)
    assert world.drive(run).terminal_code == "BUDGET_EXHAUSTED"
    assert len(world.said(run, "model_called")) == 1
    with tenant_transaction(world.id):
        assert orjson.loads(bytes(ManifestRow.objects.get(id=run).body))["expected"]["runs"] == 0
    world.sound(run)


def dearer(scenario: str | None, at: datetime) -> tuple[ModelProfile, ...]:
    """The models at twenty times their price."""
    found = []
    for profile in profiles_for(scenario, at=at):
        assert profile.price is not None
        price = profile.price.evolve(
            input=20 * profile.price.input, output=20 * profile.price.output, version="dear-1"
        )
        found.append(profile.evolve(price=price))
    return tuple(found)


@proves("R-BUDGET-4", part="the same models at the same price")
def test_runs_at_a_dear_price_stop_none_at_a_cheap_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(version_pinning, "profiles_now", dearer)
        lived(world, LEAST)
        dear = world.submit("tool-loop", SUM)
    with tenant_transaction(world.id):
        known = expected_for(subject_of_run(Run.objects.get(id=dear)))
    assert max(least["cost_usd"] for least in known.least.values()) > Decimal("0.03")
    cheap = world.submit("tool-loop", SUM, budget={"cost_usd": "0.03"})
    assert world.drive(cheap).terminal_code == "SUCCESS"


@proves("R-BUDGET-4", part="only results teach, each once")
def test_only_runs_that_came_to_a_result_teach_and_each_once(world: World) -> None:
    stopped = world.submit("tool-loop", SUM, budget={"model_turns": 1})
    world.drive(stopped)
    assert not learn_from(stopped)
    run = world.submit("tool-loop", SUM)
    assert not learn_from(run)
    world.drive(run)
    assert learn_from(run)
    assert learn_from(run)
    with tenant_transaction(world.id):
        subject = subject_of_run(Run.objects.get(id=run))
        assert expected_for(subject).runs == 1
        assert len(Expectation.objects.get(graph=subject).lived) == 1
    assert KEPT > 1


@proves("R-BUDGET-4", part="shown")
def test_both_bounds_stand_on_the_runs_page_and_in_the_api(world: World, company: Company) -> None:
    with company_at(company.url):
        run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
        assert world.drive(run).status == "awaiting_gate"
    auditor = program(world.id, Role.AUDITOR)
    shown = auditor.get(f"/runs/{run}").json()["estimate"]
    assert shown["model_turns"] == {"lower": "1", "upper": None}
    assert shown["tool_calls"] == {"lower": "4", "upper": None}
    page = text(at(world.people.operator).get(f"/runs/{run}", {"tab": "ledger"}))
    assert "to come: at least" in page
    assert "to come: unknown" in page
    with company_at(company.url):
        world.approve_all(run)
    assert auditor.get(f"/runs/{run}").json()["estimate"] is None
    assert "to come" not in text(at(world.people.operator).get(f"/runs/{run}"))


def used(world: World, run: UUID) -> dict[str, Decimal]:
    """What the run has used, by dimension."""
    with tenant_transaction(world.id):
        return dict(Line.objects.filter(account_id=run).values_list("dimension", "used"))


@proves("R-BUDGET-4", part="shown: from and to, where runs like it were learnt from")
def test_what_remains_is_shown_from_and_to_once_runs_like_it_have_ended(
    world: World, company: Company
) -> None:
    orders = iter(f"A-10{number:02}" for number in range(1, 99))

    def submitted() -> UUID:
        return world.submit("support-refund", "Refund the order", inputs={"order_id": next(orders)})

    with company_at(company.url):
        learnt = 0
        while learnt < LEAST:
            like = submitted()
            world.approve_all(like)
            learnt += learn_from(like)
        # Not every order can be refunded.
        run = next(run for run in iter(submitted, None) if world.drive(run).status == "awaiting_gate")
    shown = program(world.id, Role.AUDITOR).get(f"/runs/{run}").json()["estimate"]
    page = text(at(world.people.operator).get(f"/runs/{run}", {"tab": "ledger"}))
    assert re.search(r"to come: <?[^:]* to ", page)
    before = used(world, run)
    with company_at(company.url):
        world.approve_all(run)
    after = used(world, run)
    for name, bounds in shown.items():
        assert bounds["upper"] is not None, name
        # Time is the machine's: what it holds is measured by `bench estimates`.
        if name != "wall_clock_seconds":
            assert Decimal(bounds["lower"]) <= after[name] - before[name] <= Decimal(bounds["upper"]), name

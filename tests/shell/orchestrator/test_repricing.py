"""A price that was wrong is made good in the ledger: for runs that ended, and for runs under way
(R-BUDGET-15)."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from pytest_django import Settings

from budgets.actions import declare_price
from budgets.core.posting import Cause
from budgets.core.pricing import ModelPrice
from budgets.queries import get_usage_lines, list_run_entries, tenant_spending
from orchestrator import bundled_content
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.publishing.actions.versions import publish_boundary
from orchestrator.runs.actions.run_signals import pause, resume
from orchestrator.runs.queries.runs import state_now
from orchestrator.spending.actions.price_corrections import (
    Correction,
    apply_price_correction,
    preview_price_correction,
)
from orchestrator.spending.queries.mispriced_calls import (
    MispricedCall,
    RightPrice,
    WrongPrice,
    list_mispriced_calls,
)
from orchestrator.tools.actions.tool_updates import change_tool
from orchestrator.worker.effects.ledger_audit import prove_ledger
from orchestrator.worker.run_loop import FaultPoint
from tenancy.core.errors import InvalidInput
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.conftest import House
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.doubles.openai_server import usage as reported
from tests.factories.foreign import called, foreign, onwards
from tests.factories.world import World, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
DEAR = ModelPrice(
    provider="openai", model="default", input=Decimal("0.00001"), output=Decimal("0.0001"), source="tenant",
    version="",
)  # fmt: skip
TRUE = DEAR.evolve(input=Decimal("0.000001"), output=Decimal("0.00001"))
HALF = DEAR.evolve(input=Decimal("0.0000005"), output=Decimal("0.000005"))
FIRST = WrongPrice(provider="openai", model="default", version="tenant 1")
FREE = "SELECT 1 FROM orchestrator_run WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED"
TOLD = "SELECT count(*) FROM orchestrator_runsignal WHERE run_id = %s AND kind = 'repriced'"


def wrong_at(number: int) -> WrongPrice:
    """The tenant's own price in one of its versions."""
    return replace(FIRST, version=f"tenant {number}")


def declare(world: World, price: ModelPrice) -> None:
    """The tenant's own price from now on."""
    with tenant_transaction(world.id):
        declare_price(world.id, price, by=None, reason="the contract", at=database_now())


def spent(world: World, run: UUID) -> tuple[Decimal, Decimal, Decimal]:
    """US$ used by the run's line, by its own count, and by the tenant's day."""
    with tenant_transaction(world.id):
        line = next(line.used for name, line in get_usage_lines(run).items() if name == "cost_usd")
        return line, state_now(run).usage["cost_usd"], tenant_spending(database_now())["tenant_day"]


def corrected(found: Correction) -> tuple[int, Decimal]:
    """How many calls, by how much."""
    return found.calls, found.delta


def pausing_after(world: World, run: UUID, commits: int) -> FaultPoint:
    """A worker that is told to pause once it has committed so often."""
    seen: list[str] = []

    def fault(point: str) -> None:
        seen.append(point)
        if seen.count("committed") == commits and point == "committed":
            pause(world.id, run, by=world.people.admin.principal.id, reason="the price is wrong")

    return fault


@proves("R-BUDGET-15", part="correction by price")
def test_every_call_at_a_wrong_price_is_corrected_once_and_the_preview_says_how(
    house: House, settings: Settings
) -> None:
    with foreign(settings, OpenAIServer(said("Done.", usage=reported(100, 10)))):
        world = make_world(house)
        declare(world, DEAR)
        run = world.submit("tool-loop", "Say that it is done.")
        assert onwards(world, run).terminal_code == "SUCCESS"
    with pytest.raises(InvalidInput):
        preview_price_correction(world.id, FIRST)
    declare(world, TRUE)
    assert spent(world, run) == (Decimal("0.002"),) * 3
    asked = preview_price_correction(world.id, FIRST)
    assert (corrected(asked), asked.applied, spent(world, run)[0]) == (
        (1, Decimal("-0.0018")), False, Decimal("0.002"),
    )  # fmt: skip
    by = world.people.admin.principal.id
    done = apply_price_correction(world.id, FIRST, by=by, reason="ten times too dear")
    assert (done.runs, done.applied) == (asked.runs, True)
    assert (spent(world, run)[0], spent(world, run)[2]) == (Decimal("0.0002"),) * 2
    assert corrected(apply_price_correction(world.id, FIRST, by=by, reason="again")) == (0, Decimal(0))
    with tenant_transaction(world.id):
        entries = [
            entry
            for entry in list_run_entries(run)
            if entry.cause == Cause.CORRECTION and not entry.tenant_line
        ]
        assert [entry.price_version for entry in entries] == ["tenant 2"]
        line = AuditEntry.objects.get(verb="correct_price")
        assert (line.principal, line.object, line.after["delta_usd"]) == (by, f"run:{run}", "-0.0018")
    assert prove_ledger(world.id).faults == []
    world.sound(run)


@proves("R-BUDGET-15", part="a run under way follows, its later calls too")
def test_a_run_under_way_counts_on_from_what_it_cost_in_truth(house: House, settings: Settings) -> None:
    model = OpenAIServer(
        calls(called("calculator.evaluate", expression="6 * 7"), usage=reported(100, 10)),
        said("42", usage=reported(100, 10)),
    )
    with foreign(settings, model):
        world = make_world(house)
        declare(world, DEAR)
        run = world.submit("tool-loop", SUM)
        world.worker.fault = pausing_after(world, run, 2)
        assert world.drive(run).status == "paused"
        declare(world, TRUE)
        done = apply_price_correction(
            world.id, FIRST, by=world.people.admin.principal.id, reason="ten times too dear"
        )
        assert corrected(done) == (1, Decimal("-0.0018"))
        assert spent(world, run)[:2] == (Decimal("0.0002"), Decimal("0.002"))
        resume(world.id, run, by=world.people.admin.principal.id, reason="")
        assert onwards(world, run).terminal_code == "SUCCESS"
    # The second call is charged at the right price although the run is pinned to the wrong one.
    assert spent(world, run) == (Decimal("0.0004"),) * 3
    (said_so,) = world.said(run, "price_corrected")
    assert (said_so["subject"], said_so["was"], said_so["price_version"]) == (
        "openai:default", "tenant 1", "tenant 2",
    )  # fmt: skip
    with tenant_transaction(world.id):
        settled = [
            entry for entry in list_run_entries(run) if entry.cause == Cause.SETTLE and not entry.tenant_line
        ]
    assert {entry.price_version for entry in settled} == {"tenant 1", "", "tenant 2"}
    assert corrected(apply_price_correction(world.id, FIRST, by=None, reason="again")) == (0, Decimal(0))
    (event,) = world.said(run, "cost_corrected")
    assert (event["delta"], event["price_version"]) == ("-0.0018", "tenant 2")
    assert prove_ledger(world.id).faults == []
    world.sound(run)


@proves("R-BUDGET-15", part="a call in flight is settled at the right price")
def test_a_call_in_flight_when_its_price_is_corrected_is_charged_at_the_right_one(
    house: House, settings: Settings
) -> None:
    done: list[Correction] = []

    def correcting(point: str) -> None:
        if point == "committed" and not done:
            assert world.kinds(run)[-1] == "model_called"
            declare(world, TRUE)
            done.append(apply_price_correction(world.id, FIRST, by=None, reason="ten times too dear"))

    with foreign(settings, OpenAIServer(said("Done.", usage=reported(100, 10)))) as model:
        world = make_world(house)
        declare(world, DEAR)
        run = world.submit("tool-loop", "Say that it is done.")
        world.worker.fault = correcting
        assert onwards(world, run).terminal_code == "SUCCESS"
    assert [corrected(found) for found in done] == [(0, Decimal(0))]
    assert len(model.seen) == 1
    assert spent(world, run) == (Decimal("0.0002"),) * 3
    with tenant_transaction(world.id):
        settled = [
            entry for entry in list_run_entries(run) if entry.cause == Cause.SETTLE and not entry.tenant_line
        ]
    assert "tenant 2" in {entry.price_version for entry in settled}
    assert corrected(apply_price_correction(world.id, FIRST, by=None, reason="again")) == (0, Decimal(0))
    assert prove_ledger(world.id).faults == []
    world.sound(run)


@proves("R-BUDGET-15", part="corrections chain")
def test_a_correction_is_itself_corrected_for_runs_under_way_and_for_those_that_ended(
    house: House, settings: Settings
) -> None:
    model = OpenAIServer(
        calls(called("calculator.evaluate", expression="6 * 7"), usage=reported(100, 10)),
        said("42", usage=reported(100, 10)),
    )
    with foreign(settings, model):
        world = make_world(house)
        declare(world, DEAR)
        run = world.submit("tool-loop", SUM)
        world.worker.fault = pausing_after(world, run, 2)
        assert world.drive(run).status == "paused"
        for version, price, delta in ((1, TRUE, "-0.0018"), (2, HALF, "-0.0001")):
            declare(world, price)
            done = apply_price_correction(world.id, wrong_at(version), by=None, reason="wrong")
            assert (corrected(done), done.under_way) == ((1, Decimal(delta)), 1)
        resume(world.id, run, by=world.people.admin.principal.id, reason="")
        assert onwards(world, run).terminal_code == "SUCCESS"
    assert spent(world, run) == (Decimal("0.0002"),) * 3
    declare(world, TRUE)
    assert corrected(apply_price_correction(world.id, wrong_at(3), by=None, reason="no")) == (
        2,
        Decimal("0.0002"),
    )
    declare(world, HALF)
    assert corrected(apply_price_correction(world.id, wrong_at(4), by=None, reason="yes")) == (
        2,
        Decimal("-0.0002"),
    )
    assert prove_ledger(world.id).faults == []
    world.sound(run)


@proves("R-BUDGET-15", part="no commit misses the word")
def test_a_run_is_told_before_its_row_is_held_so_that_a_commit_that_waits_hears_it(
    house: House, settings: Settings, superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, int]] = []

    def looking(tenant_id: UUID, run_id: UUID, wrong: WrongPrice, right: RightPrice) -> list[MispricedCall]:
        """What another connection sees: whether the row is held, and the word that was left."""
        free = superuser.execute(FREE, (run_id,)).fetchall()
        (word,) = superuser.execute(TOLD, (run_id,)).fetchone() or (0,)
        seen.append((not free, word))
        return list_mispriced_calls(tenant_id, run_id, wrong, right)

    with foreign(settings, OpenAIServer(said("Done.", usage=reported(100, 10)))):
        world = make_world(house)
        declare(world, DEAR)
        world.submit("tool-loop", SUM)
        declare(world, TRUE)
        monkeypatch.setattr("orchestrator.spending.actions.price_corrections.list_mispriced_calls", looking)
        assert apply_price_correction(world.id, FIRST, by=None, reason="ten times too dear").under_way == 1
    assert seen[-1] == (True, 1)


@proves("R-BUDGET-15", part="a frozen run goes on")
def test_a_run_that_a_wrong_price_froze_goes_on_and_nobody_has_to_answer_its_request(house: House) -> None:
    world = make_world(house)
    with tenant_transaction(world.id):
        asking = bundled_content.get_bundled_boundary("tool-loop-default").evolve(
            slug="asking", on_exhaustion="request"
        )
        publish_boundary(world.id, asking, by=None)
    change_tool(world.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    run = world.submit("tool-loop", SUM, boundary="asking", budget={"cost_usd": "0.3"})
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    change_tool(world.id, "calculator.evaluate", asked_change({"price_usd": "0.1"}), by=None, reason="")
    wrong = WrongPrice(tool="calculator.evaluate", version="calculator.evaluate@2")
    done = apply_price_correction(world.id, wrong, by=None, reason="half of it")
    assert ([one.later for one in done.runs], corrected(done)) == ([True], (1, Decimal("-0.1")))
    assert world.drive(run).terminal_code == "SUCCESS"
    # Two calls at 0.1, and what the scripted model takes.
    assert len({*spent(world, run)}) == 1
    assert Decimal("0.2") < spent(world, run)[0] < Decimal("0.3")
    with tenant_transaction(world.id):
        request.refresh_from_db()
    assert (request.status, request.ended_because) == (
        "withdrawn", "the cost was corrected at price calculator.evaluate@3",
    )  # fmt: skip
    assert prove_ledger(world.id).faults == []
    world.sound(run)


@proves("R-BUDGET-15", part="a tool's price")
def test_a_tools_price_is_corrected_where_it_cost_nothing_by_mistake(house: House) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).status == "completed"
    before = spent(world, run)[0]
    change_tool(world.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    wrong = WrongPrice(tool="calculator.evaluate", version="calculator.evaluate@1")
    done = apply_price_correction(world.id, wrong, by=None, reason="it is not free")
    assert corrected(done) == (2, Decimal("0.4"))
    assert spent(world, run)[0] == before + Decimal("0.4") == spent(world, run)[2]
    assert prove_ledger(world.id).faults == []

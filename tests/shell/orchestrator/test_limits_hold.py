"""Limits hold whatever becomes of workers and clocks (B1, B3, B4, B5)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import psycopg
import pytest
from pytest_django import Settings

from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.runs.actions.run_signals import pause, resume
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.openai_server import OpenAIServer, calls, failing, said
from tests.factories.dying import Killed, dies_at
from tests.factories.foreign import called, foreign, onwards
from tests.factories.world import World, fresh_worker, make_world
from tests.proves import proves
from tests.shell.orchestrator.test_ring import SUM, let_the_lease_die


def turns_used(world: World, run: object) -> Decimal:
    with tenant_transaction(world.id):
        return get_usage_lines(run)[Dimension.MODEL_TURNS].used  # type: ignore[arg-type]


@proves("B4", part="restarts")
@proves("B3", part="a lost reply")
def test_a_reply_lost_with_its_worker_is_counted_once_and_leaves_no_second_chance(
    world: World, superuser: psycopg.Connection
) -> None:
    run = world.submit("tool-loop", SUM, budget={"model_turns": 1})
    dying = fresh_worker()
    dying.fault = dies_at("performed")
    with pytest.raises(Killed):
        dying.advance(run)
    let_the_lease_die(superuser, run)
    assert world.drive(run).terminal_code == "BUDGET_EXHAUSTED"
    assert turns_used(world, run) == 1
    assert world.kinds(run).count("model_called") == 1
    (settled,) = [body for body in world.said(run, "budget_settled") if body["amounts"].get("model_turns")]
    assert settled["unknown"] is True
    world.sound(run)


@proves("B5", part="through a run")
def test_a_call_that_failed_and_was_made_again_is_counted_twice(house: House, settings: Settings) -> None:
    model = OpenAIServer(failing(500), calls(called("calculator.evaluate", expression="6 * 7")), said("42"))
    with foreign(settings, model):
        world = make_world(house)
        run = world.submit("tool-loop", SUM, budget={"model_turns": 2})
        assert onwards(world, run).terminal_code == "BUDGET_EXHAUSTED"
    assert len(model.seen) == 2
    assert turns_used(world, run) == 2
    assert world.kinds(run).count("model_called") == 2
    settled = [body for body in world.said(run, "budget_settled") if body["amounts"].get("model_turns")]
    assert len({body["effect"] for body in settled}) == 2
    assert world.run(run).reason == "model_turns"
    world.sound(run)


@proves("B4", part="pauses")
def test_a_pause_gives_nothing_back(world: World) -> None:
    run = world.submit("tool-loop", SUM, budget={"model_turns": 2})
    slow = fresh_worker()
    by = world.people.operator.principal.id

    def pausing(point: str) -> None:
        if point == "performed" and not paused:
            paused.append(point)
            pause(world.id, run, by=by, reason="to see")

    paused: list[str] = []
    slow.fault = pausing
    assert world.drive(run, slow).status == "paused"
    resume(world.id, run, by=by, reason="seen")
    world.drive(run, fresh_worker())
    assert turns_used(world, run) <= 2
    assert world.kinds(run).count("model_called") <= 2
    world.sound(run)


@proves("B4", part="clock jumps")
@pytest.mark.parametrize("jump", [7_200.0, -5.0])
def test_a_process_whose_clock_jumps_ends_no_run_early_and_lengthens_none(
    world: World, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Working time is the database's: what this process believes the time to be is not asked."""
    deadline = datetime.now(UTC) + timedelta(minutes=30)
    run = world.submit("tool-loop", SUM, budget={"wall_clock_seconds": 60}, deadline=deadline)
    before = time.time
    monkeypatch.setattr(time, "time", lambda: before() + jump)
    assert world.drive(run).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        used = get_usage_lines(run)[Dimension.WALL_CLOCK_SECONDS].used
    assert 0 <= used < 60

"""Learning takes no thread from those that drive runs (R-BUDGET-11)."""

from threading import Event
from uuid import UUID

import pytest

from orchestrator import jobs
from orchestrator.runs.models.usage_estimate import Expectation
from orchestrator.worker import usage_learner as learning
from orchestrator.worker.process import this_process
from orchestrator.worker.usage_learner import Learner
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.world import make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
PATIENCE_SECONDS = 60.0


def taught(learner: Learner, monkeypatch: pytest.MonkeyPatch, lessons: int) -> list[UUID]:
    """What it learns from, in order, until that many lessons are learnt."""
    told: list[UUID] = []
    done = Event()

    def learn(run: UUID) -> bool:
        told.append(run)
        if len(told) == lessons:
            learner.stop()
            done.set()
        return True

    monkeypatch.setattr(learning, "learn_from", learn)
    learner.start()
    assert done.wait(PATIENCE_SECONDS)
    learner.join(PATIENCE_SECONDS)
    return told


@proves("R-BUDGET-11", part="a flood's ended runs hold no thread, and no place of anybody else's")
@proves("R-BUDGET-4", part="learnt of every tenant, whatever a flood ends")
def test_a_job_to_learn_returns_before_the_lesson_and_a_flood_has_one_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow, noisy, quiet = Learner(), str(fresh_id()), str(fresh_id())
    monkeypatch.setattr(this_process(), "learner", slow)
    flood = [fresh_id() for _ in range(40)]
    alone, other = fresh_id(), fresh_id()
    for run in flood[:39]:
        jobs.learn_from_run(run_id=str(run), tenant=noisy, workflow="tool-loop")
    jobs.learn_from_run(run_id=str(alone), tenant=quiet, workflow="tool-loop")
    jobs.learn_from_run(run_id=str(other), tenant=noisy, workflow="support-refund")
    jobs.learn_from_run(run_id=str(flood[39]), tenant=noisy, workflow="tool-loop")
    assert taught(slow, monkeypatch, 3) == [flood[39], alone, other]


def test_where_all_places_are_taken_the_tenant_with_the_most_loses_its_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, noisy, first, late = Learner(kept=3), fresh_id(), fresh_id(), fresh_id()
    alone, runs = fresh_id(), [fresh_id() for _ in range(4)]
    learner.tell(first, tenant=fresh_id(), workflow="w0")
    for number, run in enumerate(runs):
        learner.tell(run, tenant=noisy, workflow=f"w{number}")
    learner.tell(alone, tenant=late, workflow="w0")
    assert taught(learner, monkeypatch, 3) == [first, runs[0], alone]


def test_a_learner_with_nothing_to_learn_stops_when_asked() -> None:
    idle = Learner()
    idle.start()
    idle.stop()
    idle.join(PATIENCE_SECONDS)
    assert not idle.is_alive()


def test_an_ended_run_says_whose_it_was(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    world, said = make_world(house), list[dict[str, str]]()
    monkeypatch.setattr(
        "orchestrator.runs.gateways.job_queue._enqueue_job",
        lambda job, run, **how: said.append(how.get("kwargs", {})),
    )
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    assert said[-1] == {"run_id": str(run), "tenant": str(world.id), "workflow": "tool-loop"}


def test_a_lesson_is_learnt_and_one_that_fails_stops_no_other(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).terminal_code == "SUCCESS"
    with monkeypatch.context() as broken:
        broken.setattr(learning, "learn_from", lambda run: 1 / 0)
        assert Learner().lesson(run) >= 0
    assert Learner().lesson(run) >= 0
    with tenant_transaction(world.id):
        assert Expectation.objects.count() == 1

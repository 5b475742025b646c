"""Learning takes no thread from those that drive runs (R-BUDGET-11)."""

from threading import Event
from uuid import UUID

import pytest

from orchestrator import jobs
from orchestrator.models import Expectation
from orchestrator.runtime import learner as learning
from orchestrator.runtime.learner import Learner
from orchestrator.runtime.process import this_process
from tenancy.context import tenant
from tenancy.ids import fresh_id
from tests.conftest import House
from tests.factories.world import make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
PATIENCE_SECONDS = 60.0


@proves("R-BUDGET-11", part="a flood's ended runs hold no thread")
def test_a_job_to_learn_returns_before_the_lesson_and_a_flood_of_them_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[UUID] = []
    going_on, learnt = Event(), Event()

    def learn_slowly(run: UUID) -> bool:
        told.append(run)
        assert going_on.wait(PATIENCE_SECONDS)
        learnt.set()
        return True

    monkeypatch.setattr(learning, "learn_from", learn_slowly)
    slow = Learner(kept=2)
    monkeypatch.setattr(this_process(), "learner", slow)
    ended = [fresh_id() for _ in range(10)]
    for run in ended:
        jobs.learn(run_id=str(run))
    assert told == []
    slow.start()
    going_on.set()
    assert learnt.wait(PATIENCE_SECONDS)
    slow.stop()
    slow.join(PATIENCE_SECONDS)
    assert told == ended[: len(told)]
    assert 1 <= len(told) <= 2


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
    with tenant(world.id):
        assert Expectation.objects.count() == 1

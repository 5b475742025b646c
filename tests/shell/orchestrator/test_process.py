"""What a worker's process starts, sets and stops besides its runs."""

import sys
from collections.abc import Iterator

import pytest

from orchestrator.worker.commit_throttle import SWITCH_SECONDS
from orchestrator.worker.fair_scheduler import FairScheduler
from orchestrator.worker.heartbeat import Heartbeat
from orchestrator.worker.process import Process
from orchestrator.worker.sweeper import Sweeper
from orchestrator.worker.usage_learner import Learner
from tests.factories.world import fresh_worker
from tests.proves import proves


@pytest.fixture
def as_ever() -> Iterator[None]:
    """The interpreter's own interval after the test."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


THREADS = {Heartbeat, Sweeper, Learner}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[type]]:
    """Which of a process's threads were told to start and to stop; none of them does."""
    found: dict[str, set[type]] = {"start": set(), "stop": set()}
    for thread in THREADS:
        for verb, those in found.items():
            monkeypatch.setattr(thread, verb, lambda self, those=those: those.add(type(self)))
    return found


def fresh_process() -> Process:
    """A process's equipment, of which nothing runs yet."""
    worker = fresh_worker()
    return Process(
        worker=worker, heartbeat=Heartbeat(), sweep=Sweeper(worker), turns=FairScheduler(worker, threads=1)
    )


@pytest.mark.usefixtures("as_ever", "told")
@proves("R-BUDGET-11", part="threads take turns at the interpreter often")
def test_a_worker_process_lets_its_threads_take_turns_often() -> None:
    fresh_process().start()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)


@pytest.mark.usefixtures("as_ever")
def test_a_process_starts_its_threads_and_stops_all_but_the_heartbeat(told: dict[str, set[type]]) -> None:
    process = fresh_process()
    process.start()
    assert told["start"] == THREADS
    process.stop()
    assert told["stop"] == THREADS - {Heartbeat}, "leases are renewed until the last effect has ended"

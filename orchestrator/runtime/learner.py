"""Learning from ended runs, beside the threads that drive runs (R-BUDGET-4, R-BUDGET-11).

A flood ends many runs a second, and learning from one takes as long as several of their steps: as a job of
its own it held the very thread that is left for whoever comes next. So a process learns on one thread, rests
four times as long as each lesson took, and forgets what comes in faster: a few runs of a flood teach what all
would.
"""

import threading
from queue import Empty, Full, Queue
from uuid import UUID

import structlog
from django.db import connection

from orchestrator.actions.learning import learn_from
from orchestrator.gateways.clock import steady
from orchestrator.gateways.tally import TALLY

KEPT = 16
REST = 4
LONGEST_REST_SECONDS = 5.0
LOOK_SECONDS = 1.0
log = structlog.get_logger(__name__)


class Learner(threading.Thread):
    """One thread in every worker. What is not learnt when it stops is forgotten."""

    def __init__(self, kept: int = KEPT) -> None:
        super().__init__(name="learner", daemon=True)
        self._ended: Queue[UUID] = Queue(kept)
        self._stop_asked = threading.Event()

    def tell(self, run_id: UUID) -> bool:
        """A run has ended; whether it will be learnt from. Never waits."""
        try:
            self._ended.put_nowait(run_id)
        except Full:
            TALLY.add("learning", "run", "forgotten")
            return False
        return True

    def run(self) -> None:
        """Learn until stopped."""
        while not self._stop_asked.is_set():
            try:
                run_id = self._ended.get(timeout=LOOK_SECONDS)
            except Empty:
                continue
            self._stop_asked.wait(min(REST * self.lesson(run_id), LONGEST_REST_SECONDS))

    def lesson(self, run_id: UUID) -> float:
        """Learn from one run; how many seconds that took. A lesson that fails is one observation less."""
        began = steady()
        try:
            learn_from(run_id)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one run, the next one still teaches
            log.warning("learning.failed", run_id=str(run_id), error=type(error).__name__)
        finally:
            connection.close()
        return steady() - began

    def stop(self) -> None:
        """Stop after the lesson under way."""
        self._stop_asked.set()

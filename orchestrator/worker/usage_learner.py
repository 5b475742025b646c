"""Learning from ended runs, beside the threads that drive runs (R-BUDGET-4, R-BUDGET-11).

A flood ends many runs a second, and learning from one takes as long as several of their steps: as a job of
its own it held the very thread that is left for whoever comes next. So a process learns on one thread, rests
four times as long as each lesson took, and forgets what comes in faster. Each tenant has one place for each
of its workflows, held by the run that ended last, and places are served in the order in which they were
taken: a few runs of a flood teach what all would, and no flood takes the place of anybody else's run.
"""

import threading
from collections import Counter
from uuid import UUID

import structlog
from django.db import connection

from orchestrator.outbound.gateways.counters import TALLY
from orchestrator.outbound.gateways.monotonic_clock import read_monotonic_clock
from orchestrator.runs.actions.usage_learning import learn_from

KEPT = 1_024
REST = 4
LONGEST_REST_SECONDS = 5.0
log = structlog.get_logger(__name__)
Place = tuple[UUID | None, str]


class Learner(threading.Thread):
    """One thread in every worker. What is not learnt when it stops is forgotten. `kept`: how many places
    there are at the most."""

    def __init__(self, kept: int = KEPT) -> None:
        super().__init__(name="learner", daemon=True)
        self._kept = kept
        self._ended: dict[Place, UUID] = {}
        self._told = threading.Condition()
        self._stop_asked = threading.Event()

    def tell(self, run_id: UUID, *, tenant: UUID | None = None, workflow: str = "") -> None:
        """A run of this tenant's workflow has ended: it has the workflow's place from now on. Never waits."""
        place = (tenant, workflow)
        with self._told:
            if place in self._ended:
                TALLY.add("learning", "run", "forgotten")
            elif len(self._ended) >= self._kept:
                self._make_room()
            self._ended[place] = run_id
            self._told.notify()

    def run(self) -> None:
        """Learn until stopped."""
        while (run_id := self._next()) is not None:
            self._stop_asked.wait(min(REST * self.lesson(run_id), LONGEST_REST_SECONDS))

    def lesson(self, run_id: UUID) -> float:
        """Learn from one run; how many seconds that took. A lesson that fails is one observation less."""
        began = read_monotonic_clock()
        try:
            learn_from(run_id)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one run, the next one still teaches
            log.warning("learning.failed", run_id=str(run_id), error=type(error).__name__)
        finally:
            connection.close()
        return read_monotonic_clock() - began

    def stop(self) -> None:
        """Stop after the lesson under way."""
        self._stop_asked.set()
        with self._told:
            self._told.notify_all()

    def _next(self) -> UUID | None:
        """The run whose place was taken first; waits for one. None: it is time to stop."""
        with self._told:
            self._told.wait_for(lambda: self._ended or self._stop_asked.is_set())
            if self._stop_asked.is_set():
                return None
            return self._ended.pop(next(iter(self._ended)))

    def _make_room(self) -> None:
        """Forget the last place of the tenant that has the most: many workflows are a flood as well."""
        ((crowd, _),) = Counter(tenant for tenant, _ in self._ended).most_common(1)
        del self._ended[next(place for place in reversed(self._ended) if place[0] == crowd)]
        TALLY.add("learning", "run", "forgotten")

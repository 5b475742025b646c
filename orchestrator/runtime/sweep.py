"""The sweep: finds every run that stands still without waiting for anybody, straight on PostgreSQL
(docs/ring.md).

It does not ride on the broker it repairs, and it drives what it finds itself, a bounded number a tick.
"""

import threading
from collections.abc import Callable
from random import uniform
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error, connection

from orchestrator.actions.expiring import expire_gates_of, take_words_of
from orchestrator.gateways.queue import wake
from orchestrator.queries.crossing import called_up_runs, deferred_runs, due_runs

if TYPE_CHECKING:
    from orchestrator.runtime.loop import Worker

log = structlog.get_logger(__name__)
A_TICK = 20


class Sweep(threading.Thread):
    """One thread in every worker. Ticks are spread, so that workers do not look all at once."""

    def __init__(self, worker: "Worker") -> None:
        super().__init__(name="sweep", daemon=True)
        self._worker = worker
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Sweep until stopped."""
        while not self._stop_asked.wait(settings.INTERLOCK_SWEEP_SECONDS * uniform(0.8, 1.2)):  # noqa: S311
            self.tick()
        connection.close()

    def tick(self) -> int:
        """One look; how many runs were driven. A database that is away is tried again at the next tick."""
        try:
            return (
                self._looked(due_runs, self._expired)
                + self._looked(deferred_runs, self._taken)
                + self._looked(called_up_runs, self._called)
            )
        finally:
            connection.close()

    def _looked(self, find: Callable[[int], list[UUID]], drive: Callable[[UUID], bool]) -> int:
        """One look for one sort of runs; what fails here keeps the other sort from nothing."""
        driven = 0
        try:
            for run_id in find(A_TICK):
                if self._stop_asked.is_set():
                    break
                driven += drive(run_id)
        except Error as error:
            log.warning("sweep.failed", error=type(error).__name__)
        return driven

    def _expired(self, run_id: UUID) -> bool:
        """Drive a run that stands still, its gates expired that are past their time."""
        expire_gates_of(run_id)
        return self._driven(run_id)

    def _taken(self, run_id: UUID) -> bool:
        """Let what people said of a run take effect, where the word that should bring it was lost, and drive
        it."""
        try:
            take_words_of(run_id)
        except Exception:
            log.exception("sweep.words_failed", run_id=str(run_id))
            return False
        return self._driven(run_id)

    def _called(self, run_id: UUID) -> bool:
        """Hand a run that was called up to whichever thread is free: its model may take its time to answer.
        Without a broker it is driven here."""
        return wake(run_id) or self._driven(run_id)

    def _driven(self, run_id: UUID) -> bool:
        """Drive one run; whatever goes wrong with it, the others behind it still have their turn."""
        try:
            self._worker.advance(run_id, aside=True)
        except Error:
            raise
        except Exception:
            log.exception("sweep.run_failed", run_id=str(run_id))
            return False
        return True

    def stop(self) -> None:
        """Stop sweeping."""
        self._stop_asked.set()

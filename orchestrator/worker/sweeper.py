"""The sweep: finds every run that stands still without waiting for anybody, straight on PostgreSQL
(docs/ring.md).

It does not ride on the broker it repairs: what it finds is driven by threads of its own, side by side, as
many as are free among those of the process and never none. A thread that has driven a run goes on with what
is ready, in the order of turns (`turns.py`): a backlog whose messages the broker lost has all threads.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import uniform
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error, connection

from orchestrator.commit.approval_timers import expire_gates_of, take_words_of
from orchestrator.runs.gateways.job_queue import enqueue_run
from orchestrator.tenants.queries.cross_tenant import (
    abandoned_runs,
    called_up_runs,
    deferred_runs,
    due_runs,
    tenant_of_run,
)
from orchestrator.worker.leases import expire_dead_lease

if TYPE_CHECKING:
    from orchestrator.worker.fair_scheduler import FairScheduler
    from orchestrator.worker.run_loop import Worker

log = structlog.get_logger(__name__)
A_TICK = 20
# A process whose connection was cut has its lock again in less; only then is it dead.
GONE_SECONDS = 1.5
Drive = Callable[[UUID], bool]


class Sweeper(threading.Thread):
    """One thread in every worker that looks, and threads that drive what it finds. Ticks are spread, so that
    workers do not look all at once."""

    def __init__(self, worker: "Worker", turns: "FairScheduler | None" = None) -> None:
        super().__init__(name="sweep", daemon=True)
        self._worker = worker
        self._turns = turns
        self._stop_asked = threading.Event()
        self._abandoned: dict[UUID, float] = {}
        self._hands = SweepThreads(settings.INTERLOCK_WORKER_THREADS)

    def run(self) -> None:
        """Sweep until stopped, at once for the first time: a worker before this one may have died."""
        while not self._stop_asked.is_set():
            self._look(self._hand_over)
            self._stop_asked.wait(self._pause())
        self._hands.close()
        connection.close()

    def tick(self) -> int:
        """One look that drives what it finds on this thread; how many runs that were."""
        return self._look(lambda drive, run_id: drive(run_id))

    def _pause(self) -> float:
        """The time to the next look: short while a worker may have died."""
        spread = settings.INTERLOCK_SWEEP_SECONDS * uniform(0.8, 1.2)  # noqa: S311
        return min(spread, GONE_SECONDS) if self._abandoned else spread

    def _look(self, take: Callable[[Drive, UUID], bool]) -> int:
        """One look; how many runs were taken. A database that is away is tried again at the next one."""
        try:
            self._end_leases_of_the_dead()
            return (
                self._drive_found_runs(due_runs, self._expire_gates, take)
                + self._drive_found_runs(deferred_runs, self._apply_decisions, take)
                + self._drive_found_runs(called_up_runs, self._enqueue_or_drive, take)
            )
        finally:
            connection.close()

    def _drive_found_runs(
        self, find: Callable[[int], list[UUID]], drive: Drive, take: Callable[[Drive, UUID], bool]
    ) -> int:
        """One look for one sort of runs; what fails here keeps the other sort from nothing."""
        taken = 0
        try:
            for run_id in find(A_TICK):
                if self._stop_asked.is_set():
                    break
                taken += take(drive, run_id)
        except Error as error:
            log.warning("sweep.failed", error=type(error).__name__)
        return taken

    def _end_leases_of_the_dead(self) -> None:
        """Let the leases die of processes that hold their locks no more, and did not a moment ago either."""
        try:
            found, now = abandoned_runs(A_TICK), monotonic()
            self._abandoned = {run_id: self._abandoned.get(run_id, now) for run_id in found}
            for run_id, since in self._abandoned.items():
                if now - since >= GONE_SECONDS and (whose := tenant_of_run(run_id)) is not None:
                    expire_dead_lease(whose, run_id)
        except Error as error:
            log.warning("sweep.failed", error=type(error).__name__)

    def _hand_over(self, drive: Drive, run_id: UUID) -> bool:
        """Have a run driven by a thread of its own, where one is free; whether one was."""

        return self._hands.take(run_id, lambda: drive(run_id), self._go_on, busy=len(self._worker.way.runs()))

    def _go_on(self) -> None:
        """Give this thread to what is ready, one run after another."""
        if self._turns is not None:
            self._turns.take()

    def _expire_gates(self, run_id: UUID) -> bool:
        """Drive a run that stands still, its gates expired that are past their time."""
        expire_gates_of(run_id)
        return self._drive_run(run_id)

    def _apply_decisions(self, run_id: UUID) -> bool:
        """Let what people said of a run take effect, where the word that should bring it was lost, and drive
        it."""
        try:
            take_words_of(run_id)
        except Exception:
            log.exception("sweep.deferred_decision_failed", run=str(run_id))
            return False
        return self._drive_run(run_id)

    def _enqueue_or_drive(self, run_id: UUID) -> bool:
        """Hand a run that was called up to whichever thread is free: its model may take its time to answer.
        Without a broker it is driven here."""
        return enqueue_run(run_id) or self._drive_run(run_id)

    def _drive_run(self, run_id: UUID) -> bool:
        """Drive one run; whatever goes wrong with it, the others behind it still have their turn."""
        try:
            self._worker.advance(run_id, aside=True)
        except Error:
            raise
        except Exception:
            log.exception("sweep.run_failed", run=str(run_id))
            return False
        return True

    def stop(self) -> None:
        """Stop sweeping."""
        self._stop_asked.set()


class SweepThreads:
    """The threads that drive what a sweep finds. Thread-safe."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._driven: set[UUID] = set()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sweep")

    def take(self, run_id: UUID, drive: Callable[[], object], then: Callable[[], None], *, busy: int) -> bool:
        """Drive a run on a thread, unless that is done already or none is left; whether it will be.

        `then` is what the thread does afterwards, `busy` how many runs others of the process have in hand.
        One run of the sweep's can always be driven.
        """
        with self._lock:
            most = max(1, self._threads - busy)
            if run_id in self._driven or len(self._driven) >= most:
                return False
            self._driven.add(run_id)
        self._pool.submit(self._drive, run_id, drive, then)
        return True

    def _drive(self, run_id: UUID, drive: Callable[[], object], then: Callable[[], None]) -> None:
        try:
            try:
                drive()
            finally:
                with self._lock:
                    self._driven.discard(run_id)
            then()
        except Error as error:
            log.warning("sweep.failed", error=type(error).__name__)
        except Exception:
            log.exception("sweep.run_failed", run=str(run_id))
        finally:
            connection.close()

    def close(self) -> None:
        """Take no more, and wait until what is driven is given back."""
        self._pool.shutdown(wait=True, cancel_futures=True)

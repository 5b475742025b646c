"""Fair dispatch across tenants: which ready run a free thread takes next (R-BUDGET-11).

A message of the queue `turns` says that some run is ready, not which one. A thread that takes the message
runs ready runs one after another, and chooses the next run whenever it is free; the order and the number of
messages give no tenant an advantage. No tenant has all threads of a process: one in eight, and at least
one, is left for other tenants, for decisions of people and for due timers. While several tenants have
active runs, none begins a run on more than half of the threads, and the last free thread is for tenants
without an active run. When the last thread is taken, a run of a tenant with more than an equal share is
stopped (`commit_throttle.py`), so that the next tenant finds a thread.
"""

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from django.db import Error

from orchestrator.runs.gateways.job_queue import enqueue_ready
from orchestrator.tenants.queries.cross_tenant import next_run

if TYPE_CHECKING:
    from orchestrator.worker.run_loop import Worker

# A run that is ready again and again, as often among a thread's last turns, is left to others and the sweep.
OFTEN = 3
LATELY = 16
log = structlog.get_logger(__name__)


def share_of(threads: int) -> int:
    """How many threads of a process one tenant may have."""
    return max(1, threads - max(1, threads // 8))


def crowded_share_of(threads: int) -> int:
    """How many of them where another tenant is at work there, too."""
    return max(1, threads // 2)


class FairScheduler:
    """Gives the turns of one process. Thread-safe.

    A message that finds its tenant at its share is dropped without loss: each of the threads that has the
    share looks again when it is free, and looks after the run was committed.
    """

    def __init__(self, worker: "Worker", *, threads: int) -> None:
        self._worker = worker
        self._threads = threads
        self._share = share_of(threads)
        self._crowded_share = crowded_share_of(threads)
        self._crowded = False
        self._lock = threading.Lock()
        self._taken: set[UUID] = set()
        worker.way.among(threads)

    def take(self, tenant: UUID | None = None) -> int:
        """Drive ready runs until none is left for this thread; how many turns that were. `tenant`: whose run
        the message spoke of."""
        turns = 0
        lately: deque[UUID] = deque(maxlen=LATELY)
        with self._worker.way.announce_arrival(tenant):
            while not self._worker.stopping:
                found = self._next(Counter(lately))
                if found is None:
                    break
                turns += 1
                run, whose = found
                lately.append(run)
                try:
                    self._drive(run, whose)
                finally:
                    with self._lock:
                        self._taken.discard(run)
        return turns

    def _next(self, driven: Counter[UUID]) -> tuple[UUID, UUID] | None:
        """Take the next run, and say whose it is. Under the lock, so that two threads never get the same."""
        tired = [run for run, often in driven.items() if often >= OFTEN]
        with self._lock:
            was, self._crowded = self._crowded, self._worker.way.has_several_tenants()
            in_use = self._taken | self._worker.way.runs()
            found = next_run([*sorted(in_use.union(tired))], self._share_now(len(in_use)))
            if found is not None:
                self._taken.add(found[0])
        if found is not None and was and not self._crowded:
            # Threads that had no turn went to sleep meanwhile.
            for _ in range(self._share - self._crowded_share):
                enqueue_ready(found[0], tenant=found[1])
        return found

    def _share_now(self, in_use: int) -> int:
        """How many runs a tenant may have here and still take one more."""
        if in_use >= self._threads - 1:
            return 1
        return self._crowded_share if self._crowded else self._share

    def _drive(self, run: UUID, tenant: UUID) -> None:
        """Drive one run; whatever goes wrong with it, the others still have their turn."""
        try:
            self._worker.advance(run, tenant_id=tenant)
        except Error:
            raise
        except Exception:
            log.exception("worker.run_failed", tenant=str(tenant), run=str(run))

"""Fair scheduling among tenants when threads of one process compete for the interpreter (R-BUDGET-11).

Threads share one interpreter. Each return from the database waits until another thread releases it, and a
thread that computes releases it when asked, after an interval. A tenant that uses all threads but one would
thereby slow down another tenant's run at each of its steps. Three measures prevent this. The switch interval
is short. While several tenants have active runs, the runs of tenants with at least FLOOD active runs commit
only BUSY at a time, and only ROOMY at a time if a tenant with fewer runs is or recently was active. While a
queued run begins, or a message about one is examined, the runs of tenants with at least twice as many active
runs wait before their next claim or commit and in the middle of one, for at most YIELD_SECONDS.

When every thread is in use, a run of a tenant with more than an equal share of them is stopped before its
next node, one for each missing thread, so that the next arrival finds a free thread.

`python -m bench fairness` measures a worker with these waits and one without. On two quiet cores the first
step of another tenant's run took 1.2 to 1.7 times as long beside a flood as alone, and 1.9 to 2.1 times with
two commits of the flood at once. On two busy cores (load 8 to 14, 80 samples) it took 1.13 times as long with
the waits and 1.66 times without them, and the flood made half of its progress.
"""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from uuid import UUID

# A tenant with two active runs is no flood.
FLOOD = 3
# A tenth of the interpreter's default: a step returns from the database ten times or more.
SWITCH_SECONDS = 0.0005
# A commit computes most of the time and queries the database for the rest: two keep the interpreter busy.
BUSY = 2
# One leaves room for beginning runs, whose commits are short.
ROOMY = 1
# A tenant that was active will return: floods do not get the whole process between its tasks.
LATELY_SECONDS = 10.0
# Longer than a run takes to begin, short compared with a lease: a beginner that hangs blocks no other run.
YIELD_SECONDS = 0.25


def switch_often() -> None:
    """Let the threads of this process switch more often than by default."""
    sys.setswitchinterval(SWITCH_SECONDS)


class CommitThrottle:
    """Turn-taking among the runs of one process. Thread-safe."""

    def __init__(self, longest: float = YIELD_SECONDS) -> None:
        self._longest = longest
        self._threads: int | None = None
        self._changed = threading.Condition()
        self._in_hand: Counter[UUID] = Counter()
        self._beginning: Counter[UUID] = Counter()
        self._leaving: Counter[UUID] = Counter()
        self._runs: Counter[UUID] = Counter()
        self._committing = 0
        self._arriving: dict[int, UUID] = {}
        self._in_vain_until: dict[UUID, float] = {}
        self._guests_until = 0.0

    def among(self, threads: int) -> None:
        """Set the number of threads that drive runs. Until it is set, no run has to leave."""
        with self._changed:
            self._threads = threads

    @contextmanager
    def announce_arrival(self, tenant: UUID | None) -> Iterator[None]:
        """Announce that this thread examines a message about a run of the tenant.

        The announcement ends once the thread has a run or the block ends. If a message led to no run and the
        tenant has many active runs, its next messages give others no reason to wait for a moment, since a
        flood sends many.
        """
        with self._changed:
            if tenant is not None and monotonic() >= self._in_vain_until.get(tenant, 0.0):
                self._arriving[threading.get_ident()] = tenant
        try:
            yield
        finally:
            if (in_vain := self._end_arrival()) is not None:
                self._in_vain(in_vain)

    @contextmanager
    def run_of(self, tenant: UUID, run: UUID, *, aside: bool = False) -> Iterator["RunSlot"]:
        """Register this run of the tenant as active and beginning for the length of the block.

        With `aside`, the run occupies no thread and is not counted.
        """
        with self._changed:
            self._beginning[tenant] += 1
            if not aside:
                self._in_hand[tenant] += 1
                self._runs[run] += 1
        self._end_arrival()
        passage = RunSlot(self, tenant, aside=aside)
        try:
            yield passage
        finally:
            passage.begun()
            with self._changed:
                if not aside:
                    if self._has_guests():
                        self._guests_until = monotonic() + LATELY_SECONDS
                    _decrement_count(self._in_hand, tenant)
                    _decrement_count(self._runs, run)
                if passage.leaving:
                    _decrement_count(self._leaving, tenant)
                self._changed.notify_all()

    def runs(self) -> frozenset[UUID]:
        """Return the active runs."""
        with self._changed:
            return frozenset(self._runs)

    def must_leave(self, tenant: UUID) -> bool:
        """Return whether one of the tenant's runs must make room, and count it as leaving if so.

        A run must leave if every thread is in use by several tenants, and the tenant has more runs than an
        equal share among the present tenants and one more. The caller has to leave on True.
        """
        with self._changed:
            staying = self._in_hand.total() - self._leaving.total()
            if self._threads is None or len(self._in_hand) < 2 or staying < self._threads:
                return False
            part = max(1, self._threads // (len(self._in_hand) + 1))
            if self._in_hand[tenant] - self._leaving[tenant] <= part:
                return False
            self._leaving[tenant] += 1
            return True

    @contextmanager
    def hold_commit_slot(self, tenant: UUID) -> Iterator[bool]:
        """Hold the right to one claim or commit of the tenant's run for the length of the block.

        A tenant with at least FLOOD active runs waits while others begin. If other tenants are active, or a
        tenant with fewer runs recently was, it also waits while the allowed number of commits is in progress.
        The wait is bounded; yields False if the commit proceeds without its turn.
        """
        with self._changed:
            in_turn = self._changed.wait_for(lambda: self._has_turn(tenant), self._longest)
            self._committing += 1
        try:
            yield in_turn
        finally:
            with self._changed:
                self._committing -= 1
                self._changed.notify_all()

    def give_way(self, tenant: UUID, longest: float) -> None:
        """Wait in the middle of a commit while others begin, if the tenant has at least FLOOD active runs.

        A beginning run may belong to a flood and wait for a turn itself, so this commit is not counted
        meanwhile.
        """
        if self._in_hand[tenant] < FLOOD:
            return
        with self._changed:
            if self._second_to_somebody(tenant):
                self._committing -= 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._second_to_somebody(tenant), longest)
                self._committing += 1

    def has_several_tenants(self) -> bool:
        """Return whether several tenants have active runs."""
        with self._changed:
            return len(self._in_hand) > 1

    def has_begun(self, tenant: UUID) -> None:
        """Record that one of the tenant's runs has begun."""
        with self._changed:
            _decrement_count(self._beginning, tenant)
            self._changed.notify_all()

    def _has_turn(self, tenant: UUID) -> bool:
        if self._in_hand[tenant] < FLOOD:
            return True
        return not (self._is_crowded() or self._second_to_somebody(tenant))

    def _end_arrival(self) -> UUID | None:
        """End this thread's announcement and return its tenant, if the announcement was still pending."""
        with self._changed:
            looked_for = self._arriving.pop(threading.get_ident(), None)
            self._changed.notify_all()
            return looked_for

    def _is_crowded(self) -> bool:
        """Return whether the commits in progress have reached the limit that protects other tenants."""
        if self._has_guests() or monotonic() < self._guests_until:
            return self._committing >= ROOMY
        return len(self._in_hand) > 1 and self._committing >= BUSY

    def _has_guests(self) -> bool:
        """Return whether several tenants are active and one of them has few active runs."""
        return len(self._in_hand) > 1 and min(self._in_hand.values()) < FLOOD

    def _in_vain(self, tenant: UUID) -> None:
        """Record that a message about the tenant's run led to no run.

        Only a tenant with many active runs is recorded, since it will send many more such messages.
        """
        now = monotonic()
        with self._changed:
            if self._in_hand[tenant] >= FLOOD:
                late = {one: until for one, until in self._in_vain_until.items() if until > now}
                self._in_vain_until = late | {tenant: now + self._longest}

    def _second_to_somebody(self, tenant: UUID) -> bool:
        """Return whether the tenant must wait for a run that begins or may be about to begin.

        The tenant has at least FLOOD active runs, and the other tenant has at most half as many.
        """
        mine = self._in_hand[tenant]
        if mine < FLOOD:
            return False
        coming = {*self._beginning, *self._arriving.values()}
        return any(other != tenant and 2 * self._in_hand[other] <= mine for other in coming)


class RunSlot:
    """One run's passage through its slice. Used by the thread that drives the run."""

    def __init__(self, way: CommitThrottle, tenant: UUID, *, aside: bool) -> None:
        self._way = way
        self._tenant = tenant
        self._aside = aside
        self._begins = True
        self._may_wait_until = 0.0
        self.leaving = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Wait for the run's turn and hold it during a claim or a commit.

        A run driven aside does not wait, because others wait for its thread.
        """
        if self._aside:
            yield
            return
        with self._way.hold_commit_slot(self._tenant):
            self._may_wait_until = monotonic() + YIELD_SECONDS
            yield

    def give_way(self) -> None:
        """Let beginning runs go first between two parts of a commit that lock only the run's own row.

        The waits of one commit add up to a moment at most.
        """
        left = self._may_wait_until - monotonic()
        if left > 0 and not self._aside:
            self._way.give_way(self._tenant, left)

    def begun(self) -> None:
        """Record that the first commit is done, that there will be none, or that the run had begun before."""
        if self._begins:
            self._begins = False
            self._way.has_begun(self._tenant)

    def leaves(self) -> bool:
        """Return whether the run is to be released before its next node. True is final."""
        self.leaving = self.leaving or self._way.must_leave(self._tenant)
        return self.leaving


def _decrement_count(counted: Counter[UUID], tenant: UUID) -> None:
    counted[tenant] -= 1
    if not counted[tenant]:
        del counted[tenant]

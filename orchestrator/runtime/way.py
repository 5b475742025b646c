"""Who goes first when threads of one process want to compute at once (R-BUDGET-11).

Threads share one interpreter. Each return from the database waits until another thread lets go of it, and a
thread that computes lets go when asked, after an interval. A tenant that has all threads but one thereby
slows the one run of somebody else at each of its steps. Three things hold against it: the interval is
short; where other tenants are or lately were, no more runs of one with three in hand commit at once than keep
the interpreter busy; and while a queued run begins, or a message is looked at that may bring one, the runs of
tenants with twice as many in hand wait before their next commit, for a moment and no longer.

And who leaves when every thread is in use: a run of a tenant with more than an equal part of them is held
before its next node, one for each thread that is missing, so that whoever comes next finds a thread.
"""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from uuid import UUID

# Somebody with two runs in hand is no flood.
FLOOD = 3
# A tenth of the interpreter's own: a step returns from the database ten times and more.
SWITCH_SECONDS = 0.0005
# What commits computes most of the time, and asks the database for the rest: so many keep it busy.
COMMITTING = 2
# Whoever was here comes again: between its tasks the others have not the process to themselves.
LATELY_SECONDS = 10.0
# Longer than a run takes to begin, short beside a lease: whoever begins and hangs stops nobody.
YIELD_SECONDS = 0.25


def switch_often() -> None:
    """Let the threads of this process take turns at the interpreter more often than usual."""
    sys.setswitchinterval(SWITCH_SECONDS)


class RightOfWay:
    """The right of way among one process's runs. Thread-safe."""

    def __init__(self, longest: float = YIELD_SECONDS) -> None:
        self._longest = longest
        self._threads: int | None = None
        self._changed = threading.Condition()
        self._in_hand: Counter[UUID] = Counter()
        self._beginning: Counter[UUID] = Counter()
        self._leaving: Counter[UUID] = Counter()
        self._runs: Counter[UUID] = Counter()
        self._committing = 0
        self._arriving: set[int] = set()
        self._in_vain_until = 0.0
        self._shared_until = 0.0

    def among(self, threads: int) -> None:
        """So many threads drive runs here. Until that is known, nobody has to leave."""
        with self._changed:
            self._threads = threads

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """A message came in: this thread looks whose turn it is, until it has a run in hand or the block
        ends. After one that found nothing the next ones are no reason to wait, for a moment: a flood's own
        messages would else stop it."""
        with self._changed:
            if monotonic() >= self._in_vain_until:
                self._arriving.add(threading.get_ident())
        try:
            yield
        finally:
            if self._arrived():
                self._in_vain_until = monotonic() + self._longest

    @contextmanager
    def run_of(self, tenant: UUID, run: UUID, *, aside: bool = False) -> Iterator["Passage"]:
        """This run of the tenant is in hand for the length of the block, and begins with it. `aside`: it
        takes none of the threads, and counts for none."""
        with self._changed:
            self._beginning[tenant] += 1
            if not aside:
                self._in_hand[tenant] += 1
                self._runs[run] += 1
                if len(self._in_hand) > 1:
                    self._shared_until = monotonic() + LATELY_SECONDS
        self._arrived()
        passage = Passage(self, tenant, aside=aside)
        try:
            yield passage
        finally:
            passage.begun()
            with self._changed:
                if not aside:
                    _less(self._in_hand, tenant)
                    _less(self._runs, run)
                if passage.leaving:
                    _less(self._leaving, tenant)
                self._changed.notify_all()

    def runs(self) -> frozenset[UUID]:
        """The runs in hand."""
        with self._changed:
            return frozenset(self._runs)

    def must_leave(self, tenant: UUID) -> bool:
        """Whether one of the tenant's runs has to make room: every thread is in use, by several tenants, and
        this one has more than it would have if they and one more had as many each. Whoever is told so
        leaves."""
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
    def committing(self, tenant: UUID) -> Iterator[bool]:
        """One commit of a run that has begun, for the length of the block. Where its tenant has a flood's
        number in hand it waits while others begin and, where other tenants are or lately were, while as many
        commit as keep the interpreter busy; whether it did not have to go without its turn."""
        with self._changed:
            in_turn = self._changed.wait_for(lambda: self._has_turn(tenant), self._longest)
            self._committing += 1
        try:
            yield in_turn
        finally:
            with self._changed:
                self._committing -= 1
                self._changed.notify_all()

    def crowded(self) -> bool:
        """Whether several tenants have runs in hand."""
        with self._changed:
            return len(self._in_hand) > 1

    def has_begun(self, tenant: UUID) -> None:
        """One of the tenant's runs has begun."""
        with self._changed:
            _less(self._beginning, tenant)
            self._changed.notify_all()

    def _has_turn(self, tenant: UUID) -> bool:
        if self._in_hand[tenant] < FLOOD:
            return True
        shared = len(self._in_hand) > 1 or monotonic() < self._shared_until
        return not (shared and self._committing >= COMMITTING) and not self._second_to_somebody(tenant)

    def _arrived(self) -> bool:
        """This thread has looked; whether that was still to be said."""
        me = threading.get_ident()
        with self._changed:
            waited_for = me in self._arriving
            self._arriving.discard(me)
            self._changed.notify_all()
            return waited_for

    def _second_to_somebody(self, tenant: UUID) -> bool:
        """Whether a run begins whose tenant has half as many in hand or fewer, or may be about to, where this
        one has a flood's number."""
        mine = self._in_hand[tenant]
        if mine < FLOOD:
            return False
        if self._arriving:
            return True
        return any(other != tenant and 2 * self._in_hand[other] <= mine for other in self._beginning)


class Passage:
    """One run's way through its slice. Used by the thread that drives it."""

    def __init__(self, way: RightOfWay, tenant: UUID, *, aside: bool) -> None:
        self._way = way
        self._tenant = tenant
        self._aside = aside
        self._begins = True
        self.leaving = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around a commit: a run that has begun waits for its turn. One that is driven aside does not: others
        wait for its thread."""
        if self._begins or self._aside:
            yield
            return
        with self._way.committing(self._tenant):
            yield

    def begun(self) -> None:
        """The first commit is made, or there will be none, or the run had begun before."""
        if self._begins:
            self._begins = False
            self._way.has_begun(self._tenant)

    def leaves(self) -> bool:
        """Whether the run is to be given back before its next node; once said, it holds."""
        self.leaving = self.leaving or self._way.must_leave(self._tenant)
        return self.leaving


def _less(counted: Counter[UUID], tenant: UUID) -> None:
    counted[tenant] -= 1
    if not counted[tenant]:
        del counted[tenant]

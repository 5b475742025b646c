"""Who goes first when threads of one process want to compute at once (R-BUDGET-11).

Threads share one interpreter. Each return from the database waits until another thread lets go of it, and a
thread that computes lets go when asked, after an interval. A tenant that has all threads but one thereby
slows the one run of somebody else at each of its steps. Three things hold against it: the interval is
short; where other tenants are, no more runs of those with three in hand commit at once than keep the
interpreter busy, and only one where somebody with fewer is or lately was; and while a queued run begins, or a
message about one is looked at, the runs of tenants with twice as many in hand wait before their next claim or
commit and in the midst of one, for a moment and no longer.

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
BUSY = 2
# One leaves room for whoever begins: what it has under way is over soon.
ROOMY = 1
# Whoever was here comes again: between its tasks the floods have not the process to themselves.
LATELY_SECONDS = 10.0
# Longer than a run takes to begin, short beside a lease: whoever begins and hangs stops nobody.
YIELD_SECONDS = 0.25


def switch_often() -> None:
    """Let the threads of this process take turns at the interpreter more often than usual."""
    sys.setswitchinterval(SWITCH_SECONDS)


class CommitThrottle:
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
        self._arriving: dict[int, UUID] = {}
        self._in_vain_until: dict[UUID, float] = {}
        self._guests_until = 0.0

    def among(self, threads: int) -> None:
        """So many threads drive runs here. Until that is known, nobody has to leave."""
        with self._changed:
            self._threads = threads

    @contextmanager
    def arriving(self, tenant: UUID | None) -> Iterator[None]:
        """A message came in about a run of the tenant: this thread looks whose turn it is, until it has a run
        in hand or the block ends. After one that found nothing the tenant's next ones are no reason to wait,
        for a moment: what floods sends many."""
        with self._changed:
            if tenant is not None and monotonic() >= self._in_vain_until.get(tenant, 0.0):
                self._arriving[threading.get_ident()] = tenant
        try:
            yield
        finally:
            if (in_vain := self._arrived()) is not None:
                self._in_vain(in_vain)

    @contextmanager
    def run_of(self, tenant: UUID, run: UUID, *, aside: bool = False) -> Iterator["RunSlot"]:
        """This run of the tenant is in hand for the length of the block, and begins with it. `aside`: it
        takes none of the threads, and counts for none."""
        with self._changed:
            self._beginning[tenant] += 1
            if not aside:
                self._in_hand[tenant] += 1
                self._runs[run] += 1
        self._arrived()
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
        """One claim or commit of a run of the tenant, for the length of the block. Where the tenant has a
        flood's number in hand it waits while others begin and, where other tenants are or somebody with fewer
        lately was, while as many commit as may at once; whether it did not have to go without its turn."""
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
        """In the midst of a commit of the tenant's: wait while others begin, where it has a flood's number in
        hand. Whoever begins may be a flood itself and wait for a turn, so this one does not count
        meanwhile."""
        if self._in_hand[tenant] < FLOOD:
            return
        with self._changed:
            if self._second_to_somebody(tenant):
                self._committing -= 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._second_to_somebody(tenant), longest)
                self._committing += 1

    def crowded(self) -> bool:
        """Whether several tenants have runs in hand."""
        with self._changed:
            return len(self._in_hand) > 1

    def has_begun(self, tenant: UUID) -> None:
        """One of the tenant's runs has begun."""
        with self._changed:
            _decrement_count(self._beginning, tenant)
            self._changed.notify_all()

    def _has_turn(self, tenant: UUID) -> bool:
        if self._in_hand[tenant] < FLOOD:
            return True
        return not (self._crowding() or self._second_to_somebody(tenant))

    def _arrived(self) -> UUID | None:
        """This thread has looked; for whose run, where that was still to be said."""
        with self._changed:
            looked_for = self._arriving.pop(threading.get_ident(), None)
            self._changed.notify_all()
            return looked_for

    def _crowding(self) -> bool:
        """Whether as many commit as may at once, for the sake of others."""
        if self._has_guests() or monotonic() < self._guests_until:
            return self._committing >= ROOMY
        return len(self._in_hand) > 1 and self._committing >= BUSY

    def _has_guests(self) -> bool:
        """Whether somebody with few runs in hand is here, beside others."""
        return len(self._in_hand) > 1 and min(self._in_hand.values()) < FLOOD

    def _in_vain(self, tenant: UUID) -> None:
        """A message about this tenant's run found nothing to drive: where it has many, many more will."""
        now = monotonic()
        with self._changed:
            if self._in_hand[tenant] >= FLOOD:
                late = {one: until for one, until in self._in_vain_until.items() if until > now}
                self._in_vain_until = late | {tenant: now + self._longest}

    def _second_to_somebody(self, tenant: UUID) -> bool:
        """Whether a run begins whose tenant has half as many in hand or fewer, or may be about to, where this
        one has a flood's number."""
        mine = self._in_hand[tenant]
        if mine < FLOOD:
            return False
        coming = {*self._beginning, *self._arriving.values()}
        return any(other != tenant and 2 * self._in_hand[other] <= mine for other in coming)


class RunSlot:
    """One run's way through its slice. Used by the thread that drives it."""

    def __init__(self, way: CommitThrottle, tenant: UUID, *, aside: bool) -> None:
        self._way = way
        self._tenant = tenant
        self._aside = aside
        self._begins = True
        self._may_wait_until = 0.0
        self.leaving = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around a claim or a commit: it waits for its turn. One that is driven aside does not: others wait
        for its thread."""
        if self._aside:
            yield
            return
        with self._way.committing(self._tenant):
            self._may_wait_until = monotonic() + YIELD_SECONDS
            yield

    def give_way(self) -> None:
        """Between two parts of a commit that keep nothing but the run's own row: whoever begins goes first,
        for a moment in all of the commit."""
        left = self._may_wait_until - monotonic()
        if left > 0 and not self._aside:
            self._way.give_way(self._tenant, left)

    def begun(self) -> None:
        """The first commit is made, or there will be none, or the run had begun before."""
        if self._begins:
            self._begins = False
            self._way.has_begun(self._tenant)

    def leaves(self) -> bool:
        """Whether the run is to be given back before its next node; once said, it holds."""
        self.leaving = self.leaving or self._way.must_leave(self._tenant)
        return self.leaving


def _decrement_count(counted: Counter[UUID], tenant: UUID) -> None:
    counted[tenant] -= 1
    if not counted[tenant]:
        del counted[tenant]

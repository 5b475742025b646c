"""The runs that this process holds, and the thread that renews their leases (R-SESS-2)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error, connection

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.worker.leases import renew_lease

# A row is locked for less than a second; a lease not renewed by then waits for the next beat.
TRIES, AGAIN_SECONDS = 8, 0.1
log = structlog.get_logger(__name__)


class HeldRuns:
    """The claimed runs of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[UUID, ClaimedRun] = {}

    @contextmanager
    def hold_run(self, hand: ClaimedRun) -> Iterator[None]:
        """Register the run as held for the length of the block."""
        with self._lock:
            self._runs[hand.run] = hand
        try:
            yield
        finally:
            with self._lock:
                self._runs.pop(hand.run, None)

    def hands(self) -> tuple[ClaimedRun, ...]:
        """Return the runs held now."""
        with self._lock:
            return tuple(self._runs.values())


HELD = HeldRuns()


class Heartbeat(threading.Thread):
    """Renews all leases of this process three times per lease period.

    A failed renewal is repeated at the next beat.
    """

    def __init__(self) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Beat until stopped."""
        while not self._stop_asked.wait(settings.INTERLOCK_LEASE_SECONDS / 3):
            self.beat()
        connection.close()

    def beat(self) -> None:
        """Renew every held lease once.

        A run whose row is locked, usually by a commit of its own, is skipped and tried again a little later,
        so that the other runs do not wait for it.
        """
        left = HELD.hands()
        for _ in range(TRIES):
            left = tuple(hand for hand in left if not self._renew_one(hand))
            if not left or self._stop_asked.wait(AGAIN_SECONDS):
                return

    def _renew_one(self, hand: ClaimedRun) -> bool:
        try:
            return renew_lease(hand.tenant, hand.run, hand.worker, hand.fence)
        except Error as error:
            log.warning("heartbeat.failed", error=type(error).__name__)
            connection.close()
            return False

    def stop(self) -> None:
        """Stop beating."""
        self._stop_asked.set()

"""Announcing: after a commit one tiny hint that a run has news. A hint may be lost; the trace not.

One thread a process publishes, with a loop of its own, because a channel layer's connections belong to the
loop that opened them. Hints of one group that wait are one hint. A tenant's lists look four times a second at
most, so its hints wait for one another longer than a run's.
"""

import asyncio
import threading
from time import monotonic, sleep
from uuid import UUID

import structlog
from channels.layers import get_channel_layer

from traces.signals import appended

log = structlog.get_logger(__name__)
PATIENCE_SECONDS = 2.0
# A viewer sees four frames a second; a hint for each commit of a busy run would cost as much as the commit.
PACE_SECONDS = 0.02
LISTS_PACE_SECONDS = 0.2
AWAY_SECONDS = 0.5


def group_of(run_id: UUID) -> str:
    """The channel group of a run."""
    return f"run.{run_id.hex}"


def group_of_tenant(tenant_id: UUID) -> str:
    """The channel group of a tenant's lists: its runs and what it asks of people."""
    return f"tenant.{tenant_id.hex}"


class Publisher(threading.Thread):
    """Sends the newest hint of each group; a broker that is away costs hints, which are counted."""

    def __init__(self) -> None:
        super().__init__(name="publisher", daemon=True)
        self._hints: dict[str, int] = {}
        self._slow: dict[str, int] = {}
        self._slow_at = 0.0
        self._some = threading.Condition()
        self.sent = 0
        self.dropped = 0

    def hint(self, group: str, seq: int, *, slow: bool = False) -> None:
        """Leave a hint; never waits for the broker, never raises."""
        with self._some:
            hints = self._slow if slow else self._hints
            hints[group] = max(seq, hints.get(group, 0))
            self._some.notify()

    def run(self) -> None:
        """Publish for as long as the process lives."""
        with asyncio.Runner() as runner:
            while True:
                away = not runner.run(self._send(self._next()))
                # The first hint goes at once; those that come while the next may not go yet become one.
                sleep(AWAY_SECONDS if away else PACE_SECONDS)

    def _next(self) -> dict[str, int]:
        """Wait until some hints may go, and take them."""
        with self._some:
            while True:
                now = monotonic()
                if self._slow and now >= self._slow_at:
                    self._slow_at = now + LISTS_PACE_SECONDS
                    hints = {**self._hints, **self._slow}
                    self._hints, self._slow = {}, {}
                    return hints
                if self._hints:
                    hints, self._hints = self._hints, {}
                    return hints
                self._some.wait(self._slow_at - now if self._slow else None)

    async def _send(self, hints: dict[str, int]) -> bool:
        """Whether the broker took them all."""
        before = self.dropped
        for group, seq in hints.items():
            try:
                layer = get_channel_layer()
                message = {"type": "news", "group": group, "seq": seq}
                sending = layer.group_send(group, message)  # type: ignore[union-attr]  # None: dropped
                await asyncio.wait_for(sending, PATIENCE_SECONDS)
            except Exception as error:  # noqa: BLE001 - whatever the broker does, a run must not feel it
                self.dropped += 1
                log.debug("hint.dropped", group=group, error=type(error).__name__)
            else:
                self.sent += 1
        return self.dropped == before


_lock = threading.Lock()
_publishers: list[Publisher] = []


def publisher() -> Publisher:
    """This process's publisher, started where there is none (a fork leaves its thread behind)."""
    with _lock:
        if not _publishers or not _publishers[0].is_alive():
            _publishers[:] = [Publisher()]
            _publishers[0].start()
        return _publishers[0]


def announce(tenant_id: UUID, run_id: UUID, seq: int) -> None:
    """Say that a run has news up to `seq`. Call after commit; never raises."""
    for receiver, answer in appended.send_robust(sender=None, tenant_id=tenant_id, run_id=run_id, seq=seq):
        if isinstance(answer, Exception):
            log.error("news.receiver_failed", receiver=str(receiver), error=repr(answer))
    _hint(tenant_id, run_id, seq)


def nudge(tenant_id: UUID, run_id: UUID) -> None:
    """Say that something about a run changed beside its trace: its row, a word said to its request.

    Call after commit; never raises."""
    _hint(tenant_id, run_id, 0)


def _hint(tenant_id: UUID, run_id: UUID, seq: int) -> None:
    publishing = publisher()
    publishing.hint(group_of(run_id), seq)
    publishing.hint(group_of_tenant(tenant_id), 0, slow=True)

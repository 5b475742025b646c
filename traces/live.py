"""Announcing: after a commit one tiny hint that a run has news. A hint may be lost; the trace not.

One thread a process publishes, with a loop of its own, because a channel layer's connections belong to the
loop that opened them. Hints of one run that wait are one hint.
"""

import asyncio
import threading
from time import sleep
from uuid import UUID

import structlog
from channels.layers import get_channel_layer

from traces.signals import appended

log = structlog.get_logger(__name__)
PATIENCE_SECONDS = 2.0
# A viewer sees four frames a second; a hint for each commit of a busy run would cost as much as the commit.
PACE_SECONDS = 0.02
AWAY_SECONDS = 0.5


def group_of(run_id: UUID) -> str:
    """The channel group of a run."""
    return f"run.{run_id.hex}"


class Publisher(threading.Thread):
    """Sends the newest hint of each run; a broker that is away costs hints, which it counts, and no more."""

    def __init__(self) -> None:
        super().__init__(name="publisher", daemon=True)
        self._hints: dict[UUID, int] = {}
        self._some = threading.Condition()
        self.sent = 0
        self.dropped = 0

    def hint(self, run_id: UUID, seq: int) -> None:
        """Leave a hint; never waits for the broker, never raises."""
        with self._some:
            self._hints[run_id] = max(seq, self._hints.get(run_id, 0))
            self._some.notify()

    def run(self) -> None:
        """Publish for as long as the process lives."""
        with asyncio.Runner() as runner:
            while True:
                with self._some:
                    while not self._hints:
                        self._some.wait()
                    hints, self._hints = self._hints, {}
                away = not runner.run(self._send(hints))
                # The first hint goes at once; those that come while the next may not go yet become one.
                sleep(AWAY_SECONDS if away else PACE_SECONDS)

    async def _send(self, hints: dict[UUID, int]) -> bool:
        """Whether the broker took them all."""
        before = self.dropped
        for run_id, seq in hints.items():
            try:
                layer = get_channel_layer()
                message = {"type": "run.news", "run": str(run_id), "seq": seq}
                sending = layer.group_send(group_of(run_id), message)  # type: ignore[union-attr]  # None: dropped
                await asyncio.wait_for(sending, PATIENCE_SECONDS)
            except Exception as error:  # noqa: BLE001 - whatever the broker does, a run must not feel it
                self.dropped += 1
                log.debug("hint.dropped", run_id=str(run_id), error=type(error).__name__)
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


def announce(run_id: UUID, seq: int) -> None:
    """Say that a run has news up to `seq`. Call after commit; never raises."""
    for receiver, answer in appended.send_robust(sender=None, run_id=run_id, seq=seq):
        if isinstance(answer, Exception):
            log.error("news.receiver_failed", receiver=str(receiver), error=repr(answer))
    publisher().hint(run_id, seq)

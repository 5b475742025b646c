"""Announcing: after a commit one tiny hint that a run has news (THE-RING). A hint may be lost; the trace may not.

One thread a process publishes; hints of the same run that wait are one hint.
"""

import threading
from uuid import UUID

import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from traces.signals import appended

log = structlog.get_logger(__name__)


class Publisher(threading.Thread):
    """Sends the newest hint of each run; a broker that is away costs hints and nothing else."""

    def __init__(self) -> None:
        super().__init__(name="publisher", daemon=True)
        self._hints: dict[UUID, int] = {}
        self._some = threading.Condition()
        self.dropped = 0

    def hint(self, run_id: UUID, seq: int) -> None:
        """Leave a hint; never waits, never raises."""
        with self._some:
            self._hints[run_id] = max(seq, self._hints.get(run_id, 0))
            self._some.notify()

    def run(self) -> None:
        """Publish for as long as the process lives."""
        while True:
            with self._some:
                while not self._hints:
                    self._some.wait()
                hints, self._hints = self._hints, {}
            self._send(hints)

    def _send(self, hints: dict[UUID, int]) -> None:
        layer = get_channel_layer()
        for run_id, seq in hints.items():
            try:
                async_to_sync(layer.group_send)(f"run.{run_id.hex}", {"type": "run.news", "seq": seq})
            except Exception as error:  # noqa: BLE001 - whatever the broker does, a run must not feel it
                self.dropped += 1
                log.debug("hint.dropped", run_id=str(run_id), error=type(error).__name__)


_lock = threading.Lock()
_publisher: list[Publisher] = []


def announce(run_id: UUID, seq: int) -> None:
    """Say that a run has news up to `seq`. Call after commit."""
    appended.send(sender=None, run_id=run_id, seq=seq)
    with _lock:
        if not _publisher or not _publisher[0].is_alive():
            _publisher[:] = [Publisher()]
            _publisher[0].start()
    _publisher[0].hint(run_id, seq)

"""Publisher of hints: after a commit, one small hint that a run has news. Hints may be lost, the trace may
not.

One thread per process publishes, with a separate event loop, because a channel layer's connections belong to
the loop that opened them. Waiting hints of one group are merged. A tenant's lists are read at most four times
a second, so their hints are merged over a longer time than a run's.
"""

import asyncio
import threading
from time import monotonic, sleep
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from channels.layers import get_channel_layer

from traces.live.subscriber_count import list_followed_groups
from traces.signals import appended

log = structlog.get_logger(__name__)
PATIENCE_SECONDS = 2.0
# A viewer gets four frames a second; a hint for each commit of a busy run would cost as much as the commit.
PACE_SECONDS = 0.02
LISTS_PACE_SECONDS = 0.2
AWAY_SECONDS = 0.5
# Seconds between queries for followers while there is text to show, the time for which queries continue after
# that, and the time for which an answer is valid.
LOOK_SECONDS, ASKING_SECONDS, KNOWN_SECONDS = 1.0, 10.0, 4.0
RUNS = "run."


def group_of(run_id: UUID) -> str:
    """Return the channel group of a run."""
    return f"{RUNS}{run_id.hex}"


def group_of_tenant(tenant_id: UUID) -> str:
    """Return the channel group of a tenant's lists: its runs and its requests to people."""
    return f"tenant.{tenant_id.hex}"


class _Round(NamedTuple):
    """The next messages to send: text by group and effect, hints by group, and whether to query followers."""

    texts: dict[tuple[str, str], dict[str, Any]]
    hints: dict[str, int]
    look: bool


class Publisher(threading.Thread):
    """Thread that sends the newest hint of each group.

    If the broker is unavailable, hints are lost and counted.
    """

    def __init__(self) -> None:
        super().__init__(name="publisher", daemon=True)
        self._hints: dict[str, int] = {}
        self._slow: dict[str, int] = {}
        self._slow_at = 0.0
        self._texts: dict[tuple[str, str], dict[str, Any]] = {}
        self._followed: frozenset[str] = frozenset()
        self._looked_at = self._asked_at = float("-inf")
        self._some = threading.Condition()
        self.sent = 0
        self.dropped = 0

    def hint(self, group: str, seq: int, *, slow: bool = False) -> None:
        """Queue a hint; never waits for the broker, never raises."""
        with self._some:
            hints = self._slow if slow else self._hints
            hints[group] = max(seq, hints.get(group, 0))
            self._some.notify()

    def follows(self, group: str) -> bool:
        """Return whether some process follows a run's group, as of the last query.

        A call makes this process query again, unless it has done so recently. Never waits for the broker,
        never raises.
        """
        now = monotonic()
        if now - self._looked_at >= LOOK_SECONDS and now - self._asked_at >= LOOK_SECONDS:
            with self._some:
                self._asked_at = now
                self._some.notify()
        return group in self._followed and now - self._looked_at < KNOWN_SECONDS

    def write(self, group: str, text: dict[str, Any]) -> None:
        """Queue a text of an effect; only the newest is sent. Never waits for the broker, never raises."""
        with self._some:
            self._texts[group, text["effect"]] = text
            self._some.notify()

    def run(self) -> None:
        """Publish as long as the process lives."""
        with asyncio.Runner() as runner:
            while True:
                away = not runner.run(self._send(self._next()))
                # The first hint is sent at once; hints that arrive during this pause are merged.
                sleep(AWAY_SECONDS if away else PACE_SECONDS)

    def _next(self) -> _Round:
        """Wait until there is something to send, and return it."""
        with self._some:
            while True:
                now = monotonic()
                slow, look = bool(self._slow) and now >= self._slow_at, self._is_to_look(now)
                if slow or look or self._hints or self._texts:
                    hints, self._hints = self._hints, {}
                    texts, self._texts = self._texts, {}
                    if slow:
                        self._slow_at = now + LISTS_PACE_SECONDS
                        hints, self._slow = {**hints, **self._slow}, {}
                    return _Round(texts, hints, look)
                self._some.wait(self._slow_at - now if self._slow else None)

    def _is_to_look(self, now: float) -> bool:
        return now - self._asked_at < ASKING_SECONDS and now - self._looked_at >= LOOK_SECONDS

    async def _send(self, going: _Round) -> bool:
        """Send a round and return whether the broker accepted all messages."""
        before = self.dropped
        for (group, _), text in going.texts.items():
            # Text in progress is not an event: with sequence 1, an older reader of the channel, which does
            # not know deltas, looks for no new event.
            await self._tell(group, {"type": "news", "group": group, "seq": 1, "delta": text})
        for group, seq in going.hints.items():
            await self._tell(group, {"type": "news", "group": group, "seq": seq})
        if going.look:
            await self._look()
        return self.dropped == before

    async def _tell(self, group: str, message: dict[str, Any]) -> None:
        try:
            layer = get_channel_layer()
            sending = layer.group_send(group, message)  # type: ignore[union-attr]  # None: dropped
            await asyncio.wait_for(sending, PATIENCE_SECONDS)
        except Exception as error:  # noqa: BLE001 - no failure of the broker may affect a run
            self.dropped += 1
            log.debug("hint.dropped", group=group, error=type(error).__name__)
        else:
            self.sent += 1

    async def _look(self) -> None:
        """Query which groups are followed; if this fails, assume none."""
        try:
            asking = list_followed_groups(get_channel_layer(), RUNS)
            self._followed = await asyncio.wait_for(asking, PATIENCE_SECONDS)
        except Exception as error:  # noqa: BLE001 - as above
            self._followed = frozenset()
            log.debug("live.read_skipped", error=type(error).__name__)
        self._looked_at = monotonic()


_lock = threading.Lock()
_publishers: list[Publisher] = []


def get_publisher() -> Publisher:
    """Return this process's publisher; start one if there is none (a fork does not copy the thread)."""
    with _lock:
        if not _publishers or not _publishers[0].is_alive():
            _publishers[:] = [Publisher()]
            _publishers[0].start()
        return _publishers[0]


def publish_event_hint(tenant_id: UUID, run_id: UUID, seq: int) -> None:
    """Announce that a run has news up to `seq`. Call after commit; never raises."""
    for receiver, answer in appended.send_robust(sender=None, tenant_id=tenant_id, run_id=run_id, seq=seq):
        if isinstance(answer, Exception):
            log.error("news.receiver_failed", receiver=str(receiver), error=repr(answer))
    _publish_hint(tenant_id, run_id, seq)


def publish_change_hint(tenant_id: UUID, run_id: UUID) -> None:
    """Announce a change of a run that is not in its trace, such as its row or a decision on its request.

    Call after commit; never raises.
    """
    _publish_hint(tenant_id, run_id, 0)


def _publish_hint(tenant_id: UUID, run_id: UUID, seq: int) -> None:
    publishing = get_publisher()
    publishing.hint(group_of(run_id), seq)
    publishing.hint(group_of_tenant(tenant_id), 0, slow=True)

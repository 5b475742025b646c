"""Announcing: after a commit one tiny hint that a run has news. A hint may be lost; the trace not.

One thread a process publishes, with a loop of its own, because a channel layer's connections belong to the
loop that opened them. Hints of one group that wait are one hint. A tenant's lists look four times a second at
most, so its hints wait for one another longer than a run's.
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
# A viewer sees four frames a second; a hint for each commit of a busy run would cost as much as the commit.
PACE_SECONDS = 0.02
LISTS_PACE_SECONDS = 0.2
AWAY_SECONDS = 0.5
# How often a process asks who follows while it has text to show, for how long it goes on asking after that,
# and for how long an answer holds.
LOOK_SECONDS, ASKING_SECONDS, KNOWN_SECONDS = 1.0, 10.0, 4.0
RUNS = "run."


def group_of(run_id: UUID) -> str:
    """The channel group of a run."""
    return f"{RUNS}{run_id.hex}"


def group_of_tenant(tenant_id: UUID) -> str:
    """The channel group of a tenant's lists: its runs and what it asks of people."""
    return f"tenant.{tenant_id.hex}"


class _Round(NamedTuple):
    """What is sent next: text by its group and effect, hints by their group, and whether to ask who
    follows."""

    texts: dict[tuple[str, str], dict[str, Any]]
    hints: dict[str, int]
    look: bool


class Publisher(threading.Thread):
    """Sends the newest hint of each group; a broker that is away costs hints, which are counted."""

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
        """Leave a hint; never waits for the broker, never raises."""
        with self._some:
            hints = self._slow if slow else self._hints
            hints[group] = max(seq, hints.get(group, 0))
            self._some.notify()

    def follows(self, group: str) -> bool:
        """Whether some process follows a run's group, as was last known: asking makes this one look again,
        while others may go on asking for nothing. Never waits for the broker, never raises."""
        now = monotonic()
        if now - self._looked_at >= LOOK_SECONDS and now - self._asked_at >= LOOK_SECONDS:
            with self._some:
                self._asked_at = now
                self._some.notify()
        return group in self._followed and now - self._looked_at < KNOWN_SECONDS

    def write(self, group: str, text: dict[str, Any]) -> None:
        """Leave a text of an effect; the newest goes. Never waits for the broker, never raises."""
        with self._some:
            self._texts[group, text["effect"]] = text
            self._some.notify()

    def run(self) -> None:
        """Publish for as long as the process lives."""
        with asyncio.Runner() as runner:
            while True:
                away = not runner.run(self._send(self._next()))
                # The first hint goes at once; those that come while the next may not go yet become one.
                sleep(AWAY_SECONDS if away else PACE_SECONDS)

    def _next(self) -> _Round:
        """Wait until something may go, and take it."""
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
        """Whether the broker took them all."""
        before = self.dropped
        for (group, _), text in going.texts.items():
            # What is written is no news up to any event: an older reader of the channel looks for none.
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
        except Exception as error:  # noqa: BLE001 - whatever the broker does, a run must not feel it
            self.dropped += 1
            log.debug("hint.dropped", group=group, error=type(error).__name__)
        else:
            self.sent += 1

    async def _look(self) -> None:
        """Ask who follows; where that cannot be known, nobody does."""
        try:
            asking = list_followed_groups(get_channel_layer(), RUNS)
            self._followed = await asyncio.wait_for(asking, PATIENCE_SECONDS)
        except Exception as error:  # noqa: BLE001 - as above
            self._followed = frozenset()
            log.debug("live.not_looked", error=type(error).__name__)
        self._looked_at = monotonic()


_lock = threading.Lock()
_publishers: list[Publisher] = []


def get_publisher() -> Publisher:
    """This process's publisher, started where there is none (a fork leaves its thread behind)."""
    with _lock:
        if not _publishers or not _publishers[0].is_alive():
            _publishers[:] = [Publisher()]
            _publishers[0].start()
        return _publishers[0]


def publish_event_hint(tenant_id: UUID, run_id: UUID, seq: int) -> None:
    """Say that a run has news up to `seq`. Call after commit; never raises."""
    for receiver, answer in appended.send_robust(sender=None, tenant_id=tenant_id, run_id=run_id, seq=seq):
        if isinstance(answer, Exception):
            log.error("news.receiver_failed", receiver=str(receiver), error=repr(answer))
    _publish_hint(tenant_id, run_id, seq)


def publish_change_hint(tenant_id: UUID, run_id: UUID) -> None:
    """Say that something about a run changed beside its trace: its row, a word said to its request.

    Call after commit; never raises."""
    _publish_hint(tenant_id, run_id, 0)


def _publish_hint(tenant_id: UUID, run_id: UUID, seq: int) -> None:
    publishing = get_publisher()
    publishing.hint(group_of(run_id), seq)
    publishing.hint(group_of_tenant(tenant_id), 0, slow=True)

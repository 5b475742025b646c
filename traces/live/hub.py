"""The live view of one process: its followers, its one channel for hints, its readers' threads."""

import asyncio
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any
from uuid import UUID

import structlog
from channels.layers import get_channel_layer

from tenancy.web.connection_auth import Presence, look_again
from traces.live.feeds import Cursor, Feed
from traces.live.follower import Follower
from traces.live.reader_threads import Readers
from traces.live.subscribers import RESTART, Limits, RenderContext, Viewer
from traces.live.text_deltas import Delta, delta_of

log = structlog.get_logger(__name__)
Key = tuple[Feed, UUID, UUID]
RETRY_SECONDS = 2.0


class Hints:
    """The channel of this process for hints.

    A group is joined while its subject is watched, once for all watchers. An unavailable broker is tried
    again; until then followers read without hints.
    """

    def __init__(self, heard: Callable[[str, int], None], wrote: Callable[[str, Delta], None]) -> None:
        self._heard, self._wrote = heard, wrote
        self._wanted: set[str] = set()
        self._joined: set[str] = set()
        self._changed = asyncio.Event()
        self._channel: str | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def want(self, group: str) -> None:
        """Join a group soon; `heard` is called after the join, because hints may have been missed."""
        self._wanted.add(group)
        self._changed.set()
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._reconcile()), asyncio.create_task(self._receive())]

    def leave(self, group: str) -> None:
        """Leave a group soon."""
        self._wanted.discard(group)
        self._changed.set()

    def stop(self) -> None:
        """Stop listening."""
        for task in self._tasks:
            task.cancel()

    async def _reconcile(self) -> None:
        while True:
            try:
                async with asyncio.timeout(RETRY_SECONDS if self._wanted != self._joined else None):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._move()
            except Exception as error:  # noqa: BLE001 - the broker is unavailable: try again soon
                log.debug("live.join_failed", error=type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)

    async def _move(self) -> None:
        layer: Any = get_channel_layer()
        if layer is None:
            return
        if self._channel is None:
            self._channel = await layer.new_channel("live.")
        for group in sorted(self._wanted - self._joined):
            await layer.group_add(group, self._channel)
            self._joined.add(group)
            self._heard(group, 0)
        for group in sorted(self._joined - self._wanted):
            self._joined.discard(group)
            await layer.group_discard(group, self._channel)

    async def _receive(self) -> None:
        while True:
            if self._channel is None:
                await asyncio.sleep(0.02)
                continue
            try:
                layer: Any = get_channel_layer()
                message = await layer.receive(self._channel)
                if "delta" in message:
                    self._take(message)
                else:
                    self._heard(message["group"], message["seq"])
            except Exception as error:  # noqa: BLE001 - the channel is created again
                log.warning("live.channel_lost", error=type(error).__name__)
                self._channel, self._joined = None, set()
                self._changed.set()
                await asyncio.sleep(RETRY_SECONDS)

    def _take(self, message: dict[str, Any]) -> None:
        """Forward a text; an unreadable text is dropped without losing the channel."""
        try:
            self._wrote(message["group"], delta_of(message["delta"]))
        except Exception as error:  # noqa: BLE001 - bad input of other processes must not lose the hints
            log.debug("live.delta_dropped", error=type(error).__name__)


class Hub:
    """The live view of this process. All methods belong to its event loop, unless documented otherwise."""

    def __init__(self, limits: Limits | None = None, *, build: str = "") -> None:
        self.limits = limits or Limits()
        self.build = build
        self.closing = False
        self._followers: dict[Key, Follower] = {}
        self._groups: dict[str, set[Follower]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._seats: Counter[UUID] = Counter()
        self._seating = Lock()
        self.reading = Readers()
        self._standings: dict[Presence, tuple[float, asyncio.Task[Presence]]] = {}
        self._hints: Hints | None = None

    def seat(self, principal: UUID) -> bool:
        """Take one of a principal's seats in this process; return False if all are taken. From any thread."""
        with self._seating:
            if self.closing or self._seats[principal] >= self.limits.sockets_a_person:
                return False
            self._seats[principal] += 1
            return True

    def unseat(self, principal: UUID) -> None:
        """Release a seat. From any thread."""
        with self._seating:
            self._seats[principal] -= 1
            if self._seats[principal] <= 0:
                del self._seats[principal]

    async def look_again(self, presence: Presence) -> Presence:
        """Return the same principal with its current permissions.

        One check serves all its viewers in this process.

        Raises: as `tenancy.web.connection_auth.look_again`.
        """
        now = asyncio.get_running_loop().time()
        at, looking = self._standings.get(presence, (0.0, None))
        if looking is None or now - at > self.limits.standing:
            # Entries of principals that have left are deleted, too.
            old = [who for who, (then, _) in self._standings.items() if now - then > self.limits.standing]
            for who in old:
                del self._standings[who]
            looking = asyncio.create_task(self.reading(look_again, presence))
            # Retrieve the exception: the callers may have left by then.
            looking.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._standings[presence] = (now, looking)
        # A cancelled caller must not cancel the check for the others.
        return await asyncio.shield(looking)

    def join(
        self, feed: Feed, tenant_id: UUID, subject: UUID, after: Cursor, look: RenderContext | None = None,
        *, deltas: bool = False,
    ) -> Viewer:  # fmt: skip
        """Follow a subject from a cursor: frames for a program, or fragments for a page's `look`.

        With `deltas`, the text that models are writing is sent too.
        """
        viewer = Viewer(after, look, self.limits, deltas=deltas)
        key = (feed, tenant_id, subject)
        follower = self._followers.get(key)
        if follower is None:
            follower = Follower(feed, tenant_id, subject, self.reading, self.limits)
            self._followers[key] = follower
            self._start(key, follower)
        follower.viewers.add(viewer)
        follower.hint(0)
        return viewer

    def _start(self, key: Key, follower: Follower) -> None:
        group = follower.feed.group(follower.tenant_id, follower.subject)
        self._groups.setdefault(group, set()).add(follower)
        if self._hints is None:
            self._hints = Hints(self._heard, self._wrote)
        self._hints.want(group)
        task = asyncio.create_task(self._follow(key, group, follower))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, key: Key, group: str, follower: Follower) -> None:
        await asyncio.sleep(0)
        try:
            await follower.follow()
        finally:
            del self._followers[key]
            self._groups[group].discard(follower)
            if not self._groups[group]:
                del self._groups[group]
                if self._hints is not None:
                    self._hints.leave(group)
            for viewer in follower.viewers:
                viewer.lapse(RESTART)

    def leave(self, feed: Feed, tenant_id: UUID, subject: UUID, viewer: Viewer) -> None:
        """Stop following."""
        follower = self._followers.get((feed, tenant_id, subject))
        if follower is not None:
            follower.viewers.discard(viewer)
            follower.hint(0)

    def nudge(self, feed: Feed, tenant_id: UUID, subject: UUID) -> None:
        """Read now: a viewer went back to another cursor."""
        if (follower := self._followers.get((feed, tenant_id, subject))) is not None:
            follower.hint(0)

    def fresh(self, feed: Feed, tenant_id: UUID, subject: UUID) -> bool:
        """Return whether the last read is recent enough to conclude that nothing happened."""
        follower = self._followers.get((feed, tenant_id, subject))
        now = asyncio.get_running_loop().time()
        return follower is not None and now - follower.read_at < self.limits.heartbeat + self.limits.fallback

    def _heard(self, group: str, seq: int) -> None:
        for follower in self._groups.get(group, ()):
            follower.hint(seq)

    def _wrote(self, group: str, delta: Delta) -> None:
        for follower in self._groups.get(group, ()):
            follower.write(delta)

    def close(self) -> None:
        """End every viewing, so that clients reconnect to the next process at once."""
        self.closing = True
        for follower in self._followers.values():
            for viewer in follower.viewers:
                viewer.lapse(RESTART)
        if self._hints is not None:
            self._hints.stop()
        self.reading.stop()

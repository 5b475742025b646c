"""One follower per subject watched in this process, however many viewers there are.

A follower reads once, renders once for each part of the page and set of scopes, and distributes the result.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import uniform
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from django.utils import timezone

from traces.live.feeds import Cursor, Feed, Fragments, extract_sequence
from traces.live.reader_threads import Readers
from traces.live.subscribers import Limits, Packet, RenderContext, Viewer, packet_of, packet_of_page
from traces.live.text_deltas import AddressedDelta, Delta, encode_text_delta

log = structlog.get_logger(__name__)
# Viewers of a run whose cursors differ by at most this number are served by one read.
NEAR = 500
AWAY_SECONDS = 1.0
LEAST_GAP_SECONDS, LONGEST_GAP_SECONDS = 0.01, 1.0


class Follower:
    """Follows one subject of one feed as long as it has viewers."""

    def __init__(self, feed: Feed, tenant_id: UUID, subject: UUID, reading: Readers, limits: Limits) -> None:
        self.feed, self.tenant_id, self.subject = feed, tenant_id, subject
        self.viewers: set[Viewer] = set()
        self.read_at = 0.0
        self._reading, self._limits = reading, limits
        self._news = asyncio.Event()
        self._worked = 0.0

    def hint(self, seq: int) -> None:
        """Note that there is news up to `seq` (0: of unknown extent).

        Viewers that are behind count too: the read in progress for them may have begun before the news.
        """
        known = seq and not self.feed.states and all(extract_sequence(v.at) >= seq for v in self.viewers)
        if not known:
            self._news.set()

    def write(self, delta: Delta) -> None:
        """Forward the text that a model is writing to the viewers that requested it.

        Programs get the text unchanged, pages in the form in which they show it.
        """
        made: dict[bool, AddressedDelta] = {}
        for viewer in self.viewers:
            if not viewer.deltas:
                continue
            on_page = viewer.look is not None
            if on_page not in made:
                text = self.feed.format_external_text(delta.text) if on_page else delta.text
                made[on_page] = encode_text_delta(delta._replace(text=text))
            viewer.show(made[on_page])

    async def follow(self) -> None:
        """Read after a hint, and now and then without one; end when there are no viewers."""
        while self.viewers:
            await self._wait()
            self._news.clear()
            self._worked = 0.0
            try:
                again = await self._catch_up()
            except Exception as error:  # noqa: BLE001 - an unavailable database must not end the viewing
                log.warning("live.read_failed", error=type(error).__name__, feed=self.feed.items)
                again = True
                await asyncio.sleep(AWAY_SECONDS)
            else:
                self.read_at = asyncio.get_running_loop().time()
            if again:
                self._news.set()
            await asyncio.sleep(self._gap())

    async def _wait(self) -> None:
        patience = self._limits.fallback * uniform(0.8, 1.2)  # noqa: S311 - spread, not secret
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            pass

    def _gap(self) -> float:
        # Based on the working time, not on the elapsed time: a slow database must not be read less often.
        wanted = self._worked * (1 / self._limits.share - 1)
        return min(max(wanted, LEAST_GAP_SECONDS), LONGEST_GAP_SECONDS)

    async def _catch_up(self) -> bool:
        """Bring every viewer as far as one read allows; return whether there is more already."""
        by_look: dict[RenderContext | None, list[Viewer]] = defaultdict(list)
        for viewer in self.viewers:
            by_look[viewer.look].append(viewer)
        again = False
        for look, viewers in by_look.items():
            for after, members in self._clusters(viewers, one_by_one=look is not None):
                again |= await self._serve(after, members, look)
        return again

    def _clusters(
        self, viewers: Iterable[Viewer], *, one_by_one: bool
    ) -> Iterator[tuple[Cursor, list[Viewer]]]:
        """Yield the groups of viewers that can be served by one read, with the cursor to read from.

        For states, these are all viewers that have caught up, from their earliest cursor: repeated items do
        no harm. For events, they are the viewers at the same position or, with `one_by_one` off, at nearby
        positions.
        """
        at: dict[Cursor, list[Viewer]] = defaultdict(list)
        for viewer in viewers:
            at[viewer.at].append(viewer)
        if self.feed.states:
            settled = [viewer for viewer in viewers if not viewer.behind]
            if settled:
                yield min(viewer.at for viewer in settled), settled
            for cursor, members in at.items():
                if late := [viewer for viewer in members if viewer.behind]:
                    yield cursor, late
            return
        low: int | None = None
        near: list[Viewer] = []
        for cursor in sorted(at, key=extract_sequence):
            if low is not None and (one_by_one or extract_sequence(cursor) - low > NEAR):
                yield low, near
                low, near = None, []
            low = extract_sequence(cursor) if low is None else low
            near = [*near, *at[cursor]]
        if low is not None:
            yield low, near

    async def _serve(self, after: Cursor, members: list[Viewer], look: RenderContext | None) -> bool:
        """Read once and distribute the result; return whether there is more already."""
        where = (self.tenant_id, self.subject, after)
        stood = {viewer: viewer.at for viewer in members}
        made: dict[Cursor, Packet] = {}
        states = self.feed.states
        if look is None:
            batch, worked = await self._reading.run_timed(self.feed.read, *where)
            made = {at: packet_of(batch, self.feed.items, at, states=states) for at in set(stood.values())}
        else:
            found, worked = await self._reading.run_timed(_render_fragments, self.feed, look, *where)
            made = dict.fromkeys(stood.values(), packet_of_page(found, states=states))
        self._worked += worked
        more = False
        for viewer, at in stood.items():
            # A viewer that left, or moved to another cursor, during the read is not served.
            if viewer in self.viewers and viewer.at == at and at in made:
                packet = made[at]
                viewer.take(packet, packet.seq)
                more |= packet.more
        return more


def _render_fragments(
    feed: Feed, look: RenderContext, tenant_id: UUID, subject: UUID, after: Cursor
) -> Fragments:
    with timezone.override(ZoneInfo(look.zone)):
        return feed.render(tenant_id, subject, after, look.scopes, look.view)

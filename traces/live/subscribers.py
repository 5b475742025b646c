"""One viewer of a feed: its cursor and the bounded queue of frames not yet sent to it."""

import asyncio
from collections import deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from traces.live.feeds import Batch, Cursor, Fragments, Item, extract_sequence
from traces.live.text_deltas import AddressedDelta

SIGN_IN, NO_PERMISSION, GONE, TOO_SLOW, TOO_MANY = 4401, 4403, 4404, 4408, 4429
BAD_MESSAGE, RESTART = 4400, 1012


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time and size limits, in seconds, frames, bytes and sockets."""

    heartbeat: float = 20.0
    # A viewer whose key or membership ends is disconnected within the sum of these two and one database read.
    recheck: float = 3.0
    standing: float = 1.5
    # Hints may be lost: while anyone watches, the feed is polled at this interval even without a hint.
    fallback: float = 3.0
    hello: float = 10.0
    frames: int = 200
    bytes: int = 4_000_000
    sockets_a_person: int = 32
    # A follower works at most this share of the time, so that one busy run cannot monopolize the process.
    share: float = 0.5
    # Messages that a client may send per minute; clients only send their cursor occasionally.
    messages_a_minute: int = 60


class RenderContext(NamedTuple):
    """The rendering context of a followed page: its reader's scopes, the part shown, and the time zone."""

    scopes: tuple[str, ...]
    view: str = ""
    zone: str = "UTC"


class Packet(NamedTuple):
    """A frame without its first field, shared by many viewers. An empty digest: it holds only a cursor."""

    seq: Cursor
    tail: str
    digest: bytes
    items: tuple[Item, ...] = ()
    beside: tuple[tuple[str, bytes], ...] = ()
    more: bool = False
    end: bytes | None = None


class Frame(NamedTuple):
    """A packet on its way to one viewer, with the cursor that the viewer had before."""

    after: Cursor
    packet: Packet

    @property
    def text(self) -> str:
        """The frame as JSON."""
        return f'{{"after":{_encode_json(self.after)}{self.packet.tail}'


def _encode_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def packet_of(batch: Batch, name: str, after: Cursor, *, states: bool) -> Packet:
    """Build the JSON frame of a batch for viewers at the cursor `after`.

    Events up to `after` are left out; states are always included.
    """
    items = (
        batch.items if states else tuple(item for item in batch.items if item.seq > extract_sequence(after))
    )
    body = b",".join(item.body for item in items)
    beside = tuple(sorted(batch.beside.items()))
    if batch.end is not None:
        beside = (*beside, ("end", batch.end))
    more = b"".join(b',"%s":%s' % (key.encode(), value) for key, value in beside)
    tail = b',"seq":%s,"%s":[%s]%s}' % (orjson.dumps(batch.seq), name.encode(), body, more)
    digest = _compute_content_digest(body, batch.seq, states=states) if items else b""
    return Packet(batch.seq, tail.decode(), digest, items, beside, batch.more, batch.end)


def packet_of_page(found: Fragments, *, states: bool) -> Packet:
    """Build the frame of a page's fragments."""
    html = orjson.dumps(found.html)
    digest = _compute_content_digest(html, found.seq, states=states) if found.html else b""
    tail = f',"seq":{_encode_json(found.seq)},"html":{html.decode()}}}'
    return Packet(found.seq, tail, digest, more=found.more)


def _compute_content_digest(body: bytes, seq: Cursor, *, states: bool) -> bytes:
    """Compute the digest that distinguishes new content from a repetition.

    The digest of states covers their content alone; the digest of events covers their position too.
    """
    return blake2b(body if states else b"%d:%s" % (extract_sequence(seq), body), digest_size=16).digest()


class Viewer:
    """One client that follows a feed.

    `at` is the cursor from which the follower reads next; `told` is the cursor last sent to the client. For
    a list, `at` advances while nothing changes and `told` does not. `look` is set for a page and None for a
    program. `deltas`: the client also wants model text while it is written.
    """

    def __init__(
        self, after: Cursor, look: RenderContext | None, limits: Limits, *, deltas: bool = False
    ) -> None:
        self.at = self.told = after
        self.look, self.deltas = look, deltas
        self.behind = True
        self.lapsed: int | None = None
        self.ended = False
        self._greeted = False
        self._digest = b""
        self._limits = limits
        self._frames: deque[Frame] = deque()
        self._written: dict[str, AddressedDelta] = {}
        self._bytes = 0
        self._some = asyncio.Event()
        self._over = asyncio.Event()

    def take(self, packet: Packet, seq: Cursor) -> None:
        """Queue a packet and set the cursor to `seq`. A packet without news is not sent; a full queue
        lapses.
        """
        self.behind, self.at = packet.more, seq
        new = bool(packet.digest) and packet.digest != self._digest
        ending = packet.end is not None and not self.ended
        if new or ending or not self._greeted:
            self.ended, self._greeted = self.ended or ending, True
            # The committed events may include the text that was being written.
            self._written.clear()
            self._digest = packet.digest or self._digest
            self._queue(Frame(self.told, packet), packet.seq)

    def show(self, delta: AddressedDelta) -> None:
        """Send a text delta after the frames in the queue; only the newest delta per effect is kept.

        A slow viewer misses older deltas and nothing else. Before the first frame the delta is dropped,
        since the client has nothing that it belongs to.
        """
        if self._greeted:
            self._written[delta.effect] = delta
            self._some.set()

    def beat(self) -> None:
        """Queue a heartbeat frame, which carries only the current cursor."""
        self._queue(Frame(self.told, Packet(self.at, f',"seq":{_encode_json(self.at)}}}', b"")), self.at)

    def move(self, after: Cursor) -> None:
        """Restart from a cursor that the client names."""
        self.at = self.told = after
        self.behind, self._greeted, self._digest = True, False, b""
        self._frames.clear()
        self._written.clear()
        self._bytes = 0

    def _queue(self, frame: Frame, seq: Cursor) -> None:
        if len(self._frames) >= self._limits.frames or self._bytes > self._limits.bytes:
            self.lapse(TOO_SLOW)
            return
        self._frames.append(frame)
        self._bytes += len(frame.packet.tail)
        self.told = seq
        self._some.set()

    def lapse(self, code: int) -> None:
        """End the viewing with a close code; frames still in the queue are not sent."""
        if self.lapsed is None:
            self.lapsed = code
        self._some.set()
        self._over.set()

    async def over(self) -> int:
        """Wait for the end of the viewing and return its close code."""
        await self._over.wait()
        return self.lapsed or RESTART

    async def next(self) -> Frame | AddressedDelta | None:
        """Return the next frame, or else the next text delta; None once the viewing is over."""
        while self.lapsed is None:
            if self._frames:
                frame = self._frames.popleft()
                self._bytes -= len(frame.packet.tail)
                return frame
            if self._written:
                return self._written.pop(next(iter(self._written)))
            self._some.clear()
            await self._some.wait()
        return None

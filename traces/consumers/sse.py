"""Server-sent events over the same hub as the WebSockets (R-API-5).

The request itself is handled by Django: the view authenticates the key, counts the rate, finds the run and
refuses with a problem document. An admitted stream is served here, with the headers of the view's response
and without the view's thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from tenancy.core.errors import TenancyError
from tenancy.core.roles import Scope
from tenancy.web.connection_auth import Presence
from tenancy.web.connection_slots import slot_of
from traces.core.errors import TooManyViewers
from traces.live.feeds import Cursor, Feed, feed_within
from traces.live.hub import Hub
from traces.live.subscribers import Frame, Viewer
from traces.live.text_deltas import AddressedDelta

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]
ADMISSION = "interlock.admission"
RETRY_MS = 1_000


class Admission:
    """Object in the ASGI scope with which a view can admit one reader to a stream."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.admitted: tuple[Presence, UUID, Cursor] | None = None

    def admit(self, presence: Presence, subject: UUID, after: Cursor) -> None:
        """Stream the subject to this reader once the view has responded.

        Raises: TooManyViewers.
        """
        if not self._hub.seat(presence.principal):
            raise TooManyViewers(limit=self._hub.limits.sockets_a_person, retry_after=RETRY_MS // 1_000)
        self.admitted = presence, subject, after


def encode_sse_event(name: str, data: bytes, seq: Cursor | None = None) -> bytes:
    """Encode one event of the stream. JSON contains no bare line break, so the data is one line."""
    place = b"" if seq is None else b"id: %s\n" % str(seq).encode()
    return b"%sevent: %s\ndata: %s\n\n" % (place, name.encode(), data)


def encode_sse_frame(frame: Frame | AddressedDelta) -> bytes:
    """Encode a frame as events: its items with their sequence numbers, then the additional events.

    A delta of text that is being written has no id: an event source resumes after the last event.
    """
    if isinstance(frame, AddressedDelta):
        return encode_sse_event("delta", frame.data)
    packet = frame.packet
    if not packet.items and not packet.beside:
        return b": \n\n"
    parts = [encode_sse_event("event", item.body, item.seq) for item in packet.items]
    parts += [encode_sse_event(name, body) for name, body in packet.beside]
    return b"".join(parts)


class Streams:
    """Wraps the HTTP application: a stream that a view admits is served from the hub."""

    def __init__(self, application: Application, hub: Hub, feed: Feed) -> None:
        self.application, self.hub, self.feed = application, hub, feed

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not scope["path"].endswith("/stream"):
            await self.application(scope, receive, send)
            return
        admission = Admission(self.hub)
        slot = slot_of(scope)
        heads: list[Message] = []

        async def hold(message: Message) -> None:
            if admission.admitted is None:
                await send(message)
            elif message["type"] == "http.response.start":
                heads.append(message)

        try:
            await self.application({**scope, ADMISSION: admission}, receive, hold)
            if admission.admitted is not None and heads:
                await send(_build_stream_head(heads[0]))
                if scope["method"] == "HEAD":
                    # A stream would send nothing and hold the seat until the client disconnects.
                    await send({"type": "http.response.body", "body": b""})
                    return
                if slot is not None:
                    slot.lend()
                await self._stream(*admission.admitted, receive, send)
        finally:
            if admission.admitted is not None:
                self.hub.unseat(admission.admitted[0].principal)
                if slot is not None:
                    slot.wait()

    async def _stream(
        self, presence: Presence, subject: UUID, after: Cursor, receive: Receive, send: Send
    ) -> None:
        """Stream until the end of the subject, the client's disconnect or the end of the process."""
        where = (feed_within(self.feed, presence.reach), presence.tenant, subject)
        viewer = self.hub.join(*where, after, deltas=True)
        parts = (
            _send_frames(viewer, send),
            _wait_for_disconnect(receive),
            self._beat(viewer, where),
            self._recheck(presence),
        )
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.hub.leave(*where, viewer)
        with suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _beat(self, viewer: Viewer, where: tuple[Feed, UUID, UUID]) -> None:
        while True:
            await asyncio.sleep(self.hub.limits.heartbeat)
            if self.hub.fresh(*where):
                viewer.beat()

    async def _recheck(self, presence: Presence) -> None:
        """Return once the reader has lost the permission to read."""
        while True:
            await asyncio.sleep(self.hub.limits.recheck)
            try:
                presence = await self.hub.look_again(presence)
                presence.needs(Scope.READ)
            except TenancyError:
                return
            except Exception:  # noqa: BLE001, S112 - the database is unavailable: nothing can be read meanwhile
                continue


async def _send_frames(viewer: Viewer, send: Send) -> None:
    await send({"type": "http.response.body", "body": b"retry: %d\n\n" % RETRY_MS, "more_body": True})
    while (frame := await viewer.next()) is not None:
        await send({"type": "http.response.body", "body": encode_sse_frame(frame), "more_body": True})
        if isinstance(frame, Frame) and frame.packet.end is not None:
            return


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _build_stream_head(head: Message) -> Message:
    """Turn the view's response head into that of a stream: no length, no caching, no buffering."""
    dropped = (b"content-length", b"cache-control")
    headers = [(name, value) for name, value in head["headers"] if bytes(name).lower() not in dropped]
    return {**head, "headers": [*headers, (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]}

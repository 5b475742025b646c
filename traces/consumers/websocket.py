"""WebSocket that follows one feed: `{"after": cursor}` first, then frames `{after, seq, …}` (R-API-5).

Every frame states the cursor that it continues from. A client with another cursor drops the frame and sends
its own cursor. The client thereby neither misses a change nor applies one twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from random import uniform
from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError
from psycopg_pool import PoolTimeout

from tenancy.core.errors import Forbidden, TenancyError
from tenancy.core.json_reading import read_json
from tenancy.core.roles import Scope
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.time_zones import is_known_time_zone
from tenancy.web.connection_auth import Headers, Presence, authenticate_connection, same_origin
from tenancy.web.connection_slots import slot_of
from traces.live.feeds import Cursor, Feed, feed_within
from traces.live.hub import Hub
from traces.live.subscribers import (
    BAD_MESSAGE,
    GONE,
    NO_PERMISSION,
    RESTART,
    SIGN_IN,
    TOO_MANY,
    RenderContext,
    Viewer,
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
log = structlog.get_logger(__name__)
AWAY = (DatabaseError, InterfaceError, PoolTimeout)
# How long the close frame may take to reach a client that stopped reading.
PARTING_SECONDS = 15.0


class Close(Exception):
    """The socket is to be closed with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a client, sent again when the client has lost its position.

    `view` is the part that a page shows, `zone` the time zone of its clock times; `deltas` requests the text
    that models are writing.
    """

    after: Cursor
    html: bool
    view: str
    zone: str
    deltas: bool


class Socket:
    """The ASGI application of one feed's sockets. `subject` comes from the route; a list's is its tenant."""

    def __init__(self, hub: Hub, feed: Feed) -> None:
        self.hub, self.feed = hub, feed

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one socket from its opening to its close."""
        headers: Headers = tuple((bytes(name).lower(), bytes(value)) for name, value in scope["headers"])
        await receive()
        if not same_origin(headers):
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        try:
            await self._serve(scope, headers, receive, send)
        except Close as closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(PARTING_SECONDS):
                    await send({"type": "websocket.close", "code": closing.code})

    async def _serve(
        self, scope: MutableMapping[str, Any], headers: Headers, receive: Receive, send: Send
    ) -> None:
        peer = (scope.get("client") or ("",))[0] or ""
        presence = await self._authenticate_reader(self.hub.reading, authenticate_connection, headers, peer)
        if not self.hub.seat(presence.principal):
            raise Close(RESTART if self.hub.closing else TOO_MANY)
        slot = slot_of(scope)
        if slot is not None:
            slot.lend()
        try:
            hello = await self._hello(receive, presence)
            if hello is None:
                return
            if hello.html and not (presence.is_person and self.feed.pages):
                raise Close(BAD_MESSAGE)
            given = scope["url_route"]["kwargs"].get("subject")
            subject = presence.tenant if given is None else uuid_or_none(given)
            if subject is None or not await self._found(presence, subject):
                raise Close(GONE)
            await _Viewing(self, presence, subject, hello).run(receive, send)
        finally:
            self.hub.unseat(presence.principal)
            if slot is not None:
                slot.wait()

    async def _hello(self, receive: Receive, presence: Presence) -> Hello | None:
        """Return the client's first message; None if the client has disconnected.

        Raises: Close.
        """
        try:
            async with asyncio.timeout(self.hub.limits.hello):
                message = await receive()
        except TimeoutError:
            raise Close(BAD_MESSAGE) from None
        return None if message["type"] == "websocket.disconnect" else self.read(message, presence)

    def read(self, message: Message, presence: Presence) -> Hello:
        """Parse a client's message.

        Raises: Close for an invalid message.
        """
        try:
            said = read_json(message.get("text") or message.get("bytes") or b"")
            after, html, deltas = said.get("after"), said.get("html", False), said.get("deltas", False)
            zone = said.get("zone") or "UTC"
            if not isinstance(html, bool) or not isinstance(deltas, bool) or not is_known_time_zone(zone):
                raise ValueError("html and deltas are true or false, zone a time zone")
            view = self.feed.view(said.get("view"), presence.principal)
            return Hello(self.feed.cursor(after), html, view, zone, deltas)
        except (ValueError, AttributeError, TypeError):
            raise Close(BAD_MESSAGE) from None

    async def _found(self, presence: Presence, subject: UUID) -> bool:
        try:
            feed = feed_within(self.feed, presence.reach)
            return await self.hub.reading(feed.find, presence.tenant, subject)
        except AWAY:
            raise Close(RESTART) from None

    async def _authenticate_reader(
        self, ask: Callable[..., Awaitable[Presence]], *arguments: Any
    ) -> Presence:
        """Return the authenticated principal of the socket, which may read.

        Raises: Close.
        """
        try:
            presence = await ask(*arguments)
            presence.needs(Scope.READ)
        except Forbidden:
            raise Close(NO_PERMISSION) from None
        except TenancyError:
            raise Close(SIGN_IN) from None
        except AWAY:
            raise Close(RESTART) from None
        return presence

    async def look_again(self, presence: Presence) -> Presence:
        """Return the same principal with its current permissions.

        If the database is unavailable, the old permissions are kept, because nothing can be read meanwhile.

        Raises: Close.
        """
        try:
            return await self._authenticate_reader(self.hub.look_again, presence)
        except Close as closing:
            if closing.code == RESTART:
                return presence
            raise


class _Viewing:
    """One socket after its hello."""

    def __init__(self, door: Socket, presence: Presence, subject: UUID, hello: Hello) -> None:
        self.door, self.presence, self.subject, self.hello = door, presence, subject, hello
        self.hub, self.feed = door.hub, feed_within(door.feed, presence.reach)
        self.viewer = self._join(hello.after)

    @property
    def _where(self) -> tuple[Feed, UUID, UUID]:
        return self.feed, self.presence.tenant, self.subject

    def _join(self, after: Cursor) -> Viewer:
        return self.hub.join(*self._where, after, self._look(), deltas=self.hello.deltas)

    def _look(self) -> RenderContext | None:
        return (
            RenderContext(self.presence.scopes, self.hello.view, self.hello.zone) if self.hello.html else None
        )

    async def run(self, receive: Receive, send: Send) -> None:
        """Run sending, receiving, heartbeat and permission checks concurrently until one of them ends.

        Raises: Close.
        """
        # A client that stopped reading blocks the sending; its socket must still be closed.
        parts = (
            self._send(send),
            self._lapse(),
            self._receive_messages(receive),
            self._beat(),
            self._recheck(),
        )
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            closes = [error for task in done if (error := task.exception()) is not None]
            if closes:
                raise closes[0]
            if self.viewer.lapsed is not None:
                raise Close(self.viewer.lapsed)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.hub.leave(*self._where, self.viewer)

    async def _send(self, send: Send) -> None:
        first = True
        while (frame := await self.viewer.next()) is not None:
            text = frame.text
            if first and self.hub.build:
                # With the build in the first frame, a page that another build rendered can warn its reader.
                text, first = f'{text[:-1]},"build":"{self.hub.build}"}}', False
            await send({"type": "websocket.send", "text": text})

    async def _lapse(self) -> None:
        raise Close(await self.viewer.over())

    async def _receive_messages(self, receive: Receive) -> None:
        left, window = self.hub.limits.messages_a_minute, 0
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            minute = int(asyncio.get_running_loop().time() // 60)
            left = left - 1 if minute == window else self.hub.limits.messages_a_minute
            window = minute
            if left < 0:
                raise Close(TOO_MANY)
            self.viewer.move(self.door.read(message, self.presence).after)
            self.hub.nudge(*self._where)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.hub.limits.heartbeat)
            if self.hub.fresh(*self._where):
                self.viewer.beat()

    async def _recheck(self) -> None:
        while True:
            await asyncio.sleep(self.hub.limits.recheck * uniform(0.8, 1.0))  # noqa: S311 - spread, not secret
            self.presence = await self.door.look_again(self.presence)
            self.viewer.look = self._look()

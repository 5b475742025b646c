"""Size limits of request bodies, per address and in total, checked before any other reader (R-SEC-7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

from config.api.problems import CONTENT_TYPE, build_problem_document
from config.http_limits.body_room import (
    KIB,
    MIB,
    RETRY_SECONDS,
    SMALL,
    UNKNOWN,
    BodyRoom,
    Identify,
    identify_nobody,
)
from tenancy.rest.parsers import TooLarge

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]
_Refusal = tuple[HTTPStatus, list[tuple[bytes, bytes]], bytes]

BODY_LIMITS: Final[tuple[tuple[str, int], ...]] = (
    ("/api/", MIB),
    # The files of a task (8 MiB) and the other fields.
    ("/new/", 11 * MIB),
    # One document of 2 MiB, or its text.
    ("/corpora", 5 * MIB),
    ("/account/", 64 * KIB),
    ("/static/", 64 * KIB),
    # Django's own limit for the fields of a form.
    ("/", 2560 * KIB),
)
"""The most bytes of a body by the beginning of its address; the first that fits holds."""
# A client that is refused while it is still sending would lose the answer to a reset connection: so many
# bytes, for so many seconds, are read and discarded.
DISCARDED_BYTES: Final = 256 * KIB
DISCARD_SECONDS: Final = 1.0
PAGE: Final = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
    "<body><main><h1>{title}</h1><p>{sentence}</p></main></body></html>"
)


def body_limit(path: str) -> int:
    """Return the maximum number of body bytes for this address."""
    return next((limit for beginning, limit in BODY_LIMITS if path.startswith(beginning)), 64 * KIB)


class LimitBodies:
    """Wraps the whole application and limits the bodies of requests.

    A body that declares to be or turns out too large is answered with 413, one for which there is currently
    no room with 503.
    """

    def __init__(
        self, application: Application, room: BodyRoom | None = None, identify: Identify = identify_nobody
    ) -> None:
        self.application, self.identify = application, identify
        self.room = BodyRoom() if room is None else room

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        place = _BodyMemory(self.room, self.identify, scope)
        body = _Body(scope, receive, send, place)
        try:
            if body.declared > body.limit:
                await body.refuse(_too_large(body.path, body.limit))
            elif not await place.has(body.declared):
                await body.refuse(_no_room(body.path))
            else:
                await self.application(scope, body.receive, body.send)
        finally:
            place.leave()


class _BodyMemory:
    """The memory that one request's body takes up.

    The sender is identified once the body is more than small.
    """

    def __init__(self, room: BodyRoom, identify: Identify, scope: MutableMapping[str, Any]) -> None:
        self._room, self._identify, self._scope = room, identify, scope
        self._sender: str | None = None
        self._held = 0

    async def has(self, size: int) -> bool:
        """Return whether there is room for a body of this size now. A declared size reserves nothing."""
        return size <= SMALL or self._room.has(await self._identify_sender(), size - SMALL)

    async def hold(self, size: int) -> bool:
        """Reserve memory for a body that has reached this size; False if there is no room."""
        more = size - SMALL - self._held
        if more <= 0:
            return True
        if not self._room.take(await self._identify_sender(), more):
            self._room.tell()
            return False
        self._held += more
        return True

    def leave(self) -> None:
        """Release the memory at the end of the request."""
        if self._held:
            self._room.give_back(self._sender or UNKNOWN, self._held)
            self._held = 0

    async def _identify_sender(self) -> str:
        if self._sender is None:
            headers = tuple((bytes(name).lower(), bytes(value)) for name, value in self._scope["headers"])
            peer = (self._scope.get("client") or ("",))[0] or ""
            self._sender = await self._identify(headers, peer)
        return self._sender


class _Body:
    """The body of one request as it arrives."""

    def __init__(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, place: _BodyMemory
    ) -> None:
        self.path: str = scope["path"]
        self.limit = body_limit(self.path)
        self.declared = declared_length(scope["headers"])
        self._receive, self._send, self._place = receive, send, place
        self._received = 0
        self._whole = self._started = self._refused = False

    async def receive(self) -> Message:
        """Return the next message.

        Once the body is too large, the refusal is sent and a disconnect is returned.
        """
        if self._refused:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if (refusal := await self._refusal()) is not None:
                await self.refuse(refusal)
                return {"type": "http.disconnect"}
        return message

    async def _refusal(self) -> _Refusal | None:
        if self._received > self.limit and not self._started:
            return _too_large(self.path, self.limit)
        return None if await self._place.hold(self._received) else _no_room(self.path)

    async def send(self, message: Message) -> None:
        """Pass on the application's answer, unless the request was refused meanwhile."""
        if not self._refused:
            self._started = True
            await self._send(message)

    async def refuse(self, refusal: _Refusal) -> None:
        """Send the refusal unless an answer has begun, and end the connection."""
        self._refused = True
        if self._started:
            return
        # Buffered data are discarded now or soon; data still read are not stored.
        status, headers, body = refusal
        await self._send({"type": "http.response.start", "status": int(status), "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        await self._discard()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _discard(self) -> None:
        left = DISCARDED_BYTES
        try:
            async with asyncio.timeout(DISCARD_SECONDS):
                while left > 0 and not self._whole:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    self._whole = not message.get("more_body", False)
        except TimeoutError:
            return


def declared_length(headers: list[tuple[bytes, bytes]]) -> int:
    """Return the Content-Length; 0 if it is missing or not a number."""
    for name, value in headers:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) <= 19 else 0
    return 0


def _too_large(path: str, limit: int) -> _Refusal:
    return _build_refusal_response(
        path, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TooLarge.default_code.replace("_", "-"),
        "That request is too large", f"This address takes a body of at most {limit} bytes.", {"limit": limit},
    )  # fmt: skip


def _no_room(path: str) -> _Refusal:
    """Build the 503 refusal for a lack of room.

    Small bodies are still accepted, so the refusal does not describe the state of the whole server.
    """
    status, headers, body = _build_refusal_response(
        path, HTTPStatus.SERVICE_UNAVAILABLE, "bodies-full", "No room for that request just now",
        f"Too much is being sent at once. Send it again in {RETRY_SECONDS} seconds.",
        {"retry_after": RETRY_SECONDS},
    )  # fmt: skip
    return status, [*headers, (b"retry-after", str(RETRY_SECONDS).encode())], body


def _build_refusal_response(
    path: str, status: HTTPStatus, code: str, title: str, sentence: str, data: dict[str, int]
) -> _Refusal:
    if path.startswith("/api/"):
        problem = build_problem_document(code=code, status=status, detail=sentence, instance=path, data=data)
        kind, body = CONTENT_TYPE, json.dumps(problem).encode()
    else:
        kind, body = "text/html; charset=utf-8", PAGE.format(title=title, sentence=sentence).encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return status, headers, body

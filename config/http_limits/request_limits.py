"""How large a request's body may be, by its address, and all bodies together, judged before anything else
reads a byte (R-SEC-7)."""

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
    # The files of a task (8 MiB) and the fields beside them.
    ("/new/", 11 * MIB),
    # One document of 2 MiB, or its text.
    ("/corpora", 5 * MIB),
    ("/account/", 64 * KIB),
    ("/static/", 64 * KIB),
    # Django's own bound of a form's fields.
    ("/", 2560 * KIB),
)
"""The most bytes of a body by the beginning of its address; the first that fits holds."""
# A client that is refused while it still sends would lose the answer to a reset connection: so much and so
# long is read on and thrown away.
DISCARDED_BYTES: Final = 256 * KIB
DISCARD_SECONDS: Final = 1.0
PAGE: Final = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
    "<body><main><h1>{title}</h1><p>{sentence}</p></main></body></html>"
)


def body_limit(path: str) -> int:
    """The most bytes that a body sent to this address may have."""
    return next((limit for beginning, limit in BODY_LIMITS if path.startswith(beginning)), 64 * KIB)


class LimitBodies:
    """Wraps the whole application: a body that says it is, or turns out, too large is answered with 413, one
    for which there is no room at the moment with 503."""

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
        place = _Place(self.room, self.identify, scope)
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


class _Place:
    """One request's place in the room. Its sender is looked up once the body is more than small."""

    def __init__(self, room: BodyRoom, identify: Identify, scope: MutableMapping[str, Any]) -> None:
        self._room, self._identify, self._scope = room, identify, scope
        self._sender: str | None = None
        self._held = 0

    async def has(self, size: int) -> bool:
        """True if there is room for a body of this size now; nothing is held for what is only declared."""
        return size <= SMALL or self._room.has(await self._known(), size - SMALL)

    async def hold(self, size: int) -> bool:
        """Hold a body that has come to this size; False where there is no room."""
        more = size - SMALL - self._held
        if more <= 0:
            return True
        if not self._room.take(await self._known(), more):
            self._room.tell()
            return False
        self._held += more
        return True

    def leave(self) -> None:
        """The request is over."""
        if self._held:
            self._room.give_back(self._sender or UNKNOWN, self._held)
            self._held = 0

    async def _known(self) -> str:
        if self._sender is None:
            headers = tuple((bytes(name).lower(), bytes(value)) for name, value in self._scope["headers"])
            peer = (self._scope.get("client") or ("",))[0] or ""
            self._sender = await self._identify(headers, peer)
        return self._sender


class _Body:
    """One request's body as it comes in."""

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, place: _Place) -> None:
        self.path: str = scope["path"]
        self.limit = body_limit(self.path)
        self.declared = declared_length(scope["headers"])
        self._receive, self._send, self._place = receive, send, place
        self._received = 0
        self._whole = self._started = self._refused = False

    async def receive(self) -> Message:
        """The next piece; once there is too much the answer is given, and the client is gone."""
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
        """Pass on what the application answers, unless the request was refused meanwhile."""
        if not self._refused:
            self._started = True
            await self._send(message)

    async def refuse(self, refusal: _Refusal) -> None:
        """Answer why, where no answer has begun, and end the connection."""
        self._refused = True
        if self._started:
            return
        # What was held is thrown away by now or in a moment; what is still read is kept nowhere.
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
    """What Content-Length says; 0 where there is none, or none that is a number."""
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
    """Small bodies are taken all the while, so this says nothing of the house as a whole."""
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

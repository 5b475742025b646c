"""How large a request's body may be, by its address, judged before anything else reads a byte (R-SEC-7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

from config.problems import CONTENT_TYPE, document
from tenancy.parsers import TooLarge

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

KIB: Final = 1024
MIB: Final = 1024 * KIB
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
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Too large</title></head>'
    "<body><main><h1>That request is too large</h1><p>{sentence}</p></main></body></html>"
)


def body_limit(path: str) -> int:
    """The most bytes that a body sent to this address may have."""
    return next((limit for beginning, limit in BODY_LIMITS if path.startswith(beginning)), 64 * KIB)


class LimitBodies:
    """Wraps the whole application: a body that says it is, or turns out, too large is answered with 413."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        body = _Body(scope, receive, send)
        if body.declared > body.limit:
            await body.refuse()
        else:
            await self.application(scope, body.receive, body.send)


class _Body:
    """One request's body as it comes in."""

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self.path: str = scope["path"]
        self.limit = body_limit(self.path)
        self.declared = declared_length(scope["headers"])
        self._receive, self._send = receive, send
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
            if self._received > self.limit and not self._started:
                await self.refuse()
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        """Pass on what the application answers, unless the request was refused meanwhile."""
        if not self._refused:
            self._started = True
            await self._send(message)

    async def refuse(self) -> None:
        """Answer 413 and end the connection."""
        self._refused = True
        headers, body = _refusal(self.path, self.limit)
        await self._send({"type": "http.response.start", "status": 413, "headers": headers})
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


def _refusal(path: str, limit: int) -> tuple[list[tuple[bytes, bytes]], bytes]:
    sentence = f"This address takes a body of at most {limit} bytes."
    if path.startswith("/api/"):
        problem = document(
            code=TooLarge.default_code.replace("_", "-"), status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            detail=sentence, instance=path, data={"limit": limit},
        )  # fmt: skip
        kind, body = CONTENT_TYPE, json.dumps(problem).encode()
    else:
        kind, body = "text/html; charset=utf-8", PAGE.format(sentence=sentence).encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return headers, body

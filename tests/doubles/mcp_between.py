"""What stands before a tool server and answers in its place: oddly, or as one of the former protocol."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Told(Protocol):
    """What the server is told, and its log."""

    def control(self) -> dict[str, Any]: ...
    def came(self, method: str) -> None: ...
    def write(self, kind: str, tool: str, arguments: Any, key: str) -> int: ...


class Between:
    """Stands before the server: plays one of the former protocol, or answers calls with other bytes."""

    def __init__(self, app: Any, shop: Told) -> None:
        self._app, self._shop = app, shop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        told = self._shop.control()
        self._shop.came(str(json.loads(body).get("method", "")))
        raw: dict[str, Any] | None = None
        if told.get("legacy") and b"server/discover" in body:
            raw = {"status": 404, "type": "text/plain", "body": "no such thing"}
        elif b'"tools/call"' in body:
            raw = told.get("raw")
        if raw is not None:
            self._shop.write("asked", "", None, "")
            headers = [(b"content-type", raw["type"].encode())]
            await send({"type": "http.response.start", "status": raw["status"], "headers": headers})
            await send({"type": "http.response.body", "body": raw["body"].encode()})
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return given.pop() if given else await receive()

        odd: dict[str, Any] | None = told.get("odd")
        if odd is None or b'"tools/call"' not in body or b"send_note" not in body:
            await self._app(scope, again, send)
            return
        await self._app(scope, again, _swallow)
        await _speak(odd, json.loads(body).get("id"), send)


async def _swallow(message: Any) -> None:
    """Say nothing of it."""


async def _speak(odd: dict[str, Any], request: Any, send: Send) -> None:
    """An odd answer; a body that is shorter than its header says ends with the connection."""
    more = odd.get("more", "") * odd.get("repeat", 1)
    body = odd["body"].replace("$id", json.dumps(request)).replace("$more", more).encode("utf-8", "replace")
    headers = [(name.encode(), value.encode()) for name, value in odd.get("headers", {}).items()]
    headers.append((b"content-type", odd.get("type", "application/json").encode()))
    if odd.get("length"):
        headers.append((b"content-length", str(odd["length"]).encode()))
    await send({"type": "http.response.start", "status": odd.get("status", 200), "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""A small ASGI application: routes, JSON in and out, a limit on bodies, refusals, faults."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, ValidationError

from demo.errors import Refusal
from demo.faults import Fault, Faults
from demo.storage.store import format_current_time

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
T = TypeVar("T", bound=BaseModel)

MAX_BODY = 64 * 1024


class Request(BaseModel):
    """One request with its whole body."""

    model_config = ConfigDict(frozen=True)

    method: str
    path: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def content(self, model: type[T]) -> T:
        """Parse the body as `model`.

        Raises: Refusal 400 with the field.
        """
        try:
            return model.model_validate_json(self.body)
        except ValidationError as error:
            raise Refusal(400, "invalid_body", _format_validation_error(error)) from error

    def parse_query(self, model: type[T]) -> T:
        """Parse the query string as `model`.

        Raises: Refusal 400 with the parameter.
        """
        try:
            return model.model_validate(dict(self.query))
        except ValidationError as error:
            raise Refusal(400, "invalid_query", _format_validation_error(error)) from error


class Answer(BaseModel):
    """A status, a JSON document and headers."""

    model_config = ConfigDict(frozen=True)

    status: int = 200
    content: Any
    headers: Mapping[str, str] = {}


Handler = Callable[[Request], Answer]


class Route(BaseModel):
    """One method and path, the service it belongs to, and its handler."""

    model_config = ConfigDict(frozen=True)

    method: str
    template: str
    handler: Handler
    service: str | None = None

    @property
    def writes(self) -> bool:
        """True if the request may change data."""
        return self.method != "GET"

    def match(self, path: str) -> dict[str, str] | None:
        """Return the named parts of `path`, or None if the path belongs to another route."""
        found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]{1,200})", self.template), path)
        return found.groupdict() if found else None


def _format_validation_error(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'body'}: {item['msg']}" for item in found)


class Application:
    """The ASGI callable. `journal` holds the last requests in memory, for a judge who counts attempts."""

    def __init__(self, routes: tuple[Route, ...], faults: Faults) -> None:
        self._routes = routes
        self._faults = faults
        self._count = 0
        self.journal: deque[dict[str, Any]] = deque(maxlen=10_000)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            message = f"The demo company does not speak {scope['type']}."
            raise RuntimeError(message)
        try:
            answer = await self._answer(scope, receive)
        except Refusal as refusal:
            answer = Answer(status=refusal.status, content={"error": refusal.code, "detail": refusal.detail})
        except sqlite3.Error as error:
            print(f"storage: {error}", file=sys.stderr, flush=True)
            answer = Answer(
                status=500, content={"error": "storage", "detail": "The books cannot be written."}
            )
        if answer is not None:
            await _send_answer(answer, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer | None:
        """Return the answer, or None if the client left before anything was done."""
        route, parts = self._find(scope["method"], scope["path"])
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if route.writes and "origin" in headers:
            # A web page in a user's browser can reach a loopback port too.
            raise Refusal(403, "not_for_browsers", "Requests that carry an Origin may not write.")
        body = await _read_json_body(receive, headers)
        query = _parse_query_string(scope["query_string"])
        request = Request(
            method=route.method, path=scope["path"], parts=parts, query=query, headers=headers, body=body
        )
        entry = self._note(route, request)
        try:
            answer = await self._perform(route, request, receive)
        except Refusal as refusal:
            entry["status"] = refusal.status
            raise
        entry["status"] = answer.status if answer else 0
        return answer

    def _find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        found = [(route, parts) for route in self._routes if (parts := route.match(path)) is not None]
        for route, parts in found:
            if route.method == method:
                return route, parts
        if found:
            raise Refusal(
                405, "method_not_allowed", f"Allowed here: {', '.join(r.method for r, _ in found)}."
            )
        raise Refusal(404, "not_found", "There is nothing at this path.")

    def _note(self, route: Route, request: Request) -> dict[str, Any]:
        self._count += 1
        entry = {
            "id": self._count,
            "at": format_current_time(),
            "service": route.service,
            "method": route.method,
            "path": request.path,
            "key": request.headers.get("idempotency-key"),
            "status": None,
        }
        if route.service:
            self.journal.append(entry)
        return entry

    async def _perform(self, route: Route, request: Request, receive: Receive) -> Answer | None:
        fault = self._faults.take(route.service, writes=route.writes)
        if fault is None:
            return route.handler(request)
        if fault.mode == "fail":
            raise Refusal(503, "unavailable", "Nothing was done.")
        if fault.mode == "refuse":
            raise Refusal(409, "in_progress", "Nothing was done for this request.")
        if fault.mode == "slow":
            # Carried out even if the client has left meanwhile, as by a slow server.
            await self._faults.slowly(fault)
        if fault.mode == "hang" and not await self._hold(fault, receive):
            return None
        answer = route.handler(request)
        if fault.mode == "commit_then_fail":
            raise Refusal(500, "internal", "Something went wrong on our side.")
        if fault.mode == "commit_then_refuse":
            raise Refusal(409, "conflict", "This cannot be done.")
        if fault.mode == "commit_then_hang":
            await self._hold(fault, receive)
        return answer

    async def _hold(self, fault: Fault, receive: Receive) -> bool:
        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        return await self._faults.hold(fault, gone)


async def _read_json_body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "incomplete", "The request ended early.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            raise Refusal(413, "too_large", f"A body may have {MAX_BODY} bytes.")
    if body and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "not_json", "A body must be application/json.")
    return body


def _parse_query_string(raw: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError as error:
        raise Refusal(400, "invalid_query", "The query string is no percent-encoded UTF-8.") from error
    query = dict(pairs)
    if len(query) != len(pairs):
        raise Refusal(400, "invalid_query", "A parameter may be given once.")
    return query


async def _send_answer(answer: Answer, send: Send) -> None:
    body = json.dumps(answer.content, ensure_ascii=False).encode()
    given = {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}
    if answer.status == 413:
        given["connection"] = "close"
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

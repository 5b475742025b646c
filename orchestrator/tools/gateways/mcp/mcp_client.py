"""Lists and calls the tools of Model Context Protocol servers, bounded (R-TOOL-21, P1 to P13).

A session serves one listing or one call. Just before a call the tool is listed again in the same session;
where the tool is not what an admin admitted, nothing is called. Server requests to the client (sampling,
user input, roots) are refused, and nothing is sent twice.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import httpx2
import orjson
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic import TypeAdapter, ValidationError

from orchestrator.core.common.errors import EgressRefused, ServerUnreachable
from orchestrator.core.common.visible_text import escape_invisible_characters
from orchestrator.core.domain.call_outcomes import Answer as Reply
from orchestrator.core.domain.call_outcomes import answer_of
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.core.tools.remote_definition import (
    MOST_PAGES,
    MOST_TOOLS,
    Drift,
    ListedTool,
    Listing,
    parse_listed_tool,
)
from orchestrator.tools.gateways.egress.guarded_transport import (
    Resolver,
    TooMuch,
    guarded_client,
    system_resolver,
)
from orchestrator.tools.gateways.egress.service_client import (
    CONNECT_SECONDS,
    KEPT,
    CallFailed,
    SendWatch,
    ServiceResponse,
    too_much,
)
from orchestrator.tools.gateways.mcp.mcp_stdio import child_process
from orchestrator.tools.gateways.secret_redaction import without_secret

MOST_BYTES = 8 * 1024 * 1024
LOOK_SECONDS = 20.0
KEY = "io.interlock/idempotency-key"
NOT_TAKEN = (-32601, -32602)
NOT_READ = (-32600, -32700)
NO_ANSWER = (CONNECTION_CLOSED, REQUEST_TIMEOUT)
_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)

for _name in ("mcp", "client"):
    # The SDK logs what servers sent, tracebacks included.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """The address and credentials of a server. `secret` is the value to send, if any; it is never
    displayed.
    """

    server: str
    url: str = ""
    argv: tuple[str, ...] = ()
    leave: EgressPolicy = field(default_factory=lambda: EgressPolicy(origins=()))
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)
    resolver: Resolver = system_resolver


class ToolChanged(Exception):
    """The tool is not what was admitted; nothing was called."""

    def __init__(self, drift: Drift) -> None:
        super().__init__(drift.tool)
        self.drift = drift


async def list_server_tools(place: ServerAddress, *, seconds: float = LOOK_SECONDS) -> Listing:
    """Return everything that a server offers.

    Raises: ServerUnreachable, EgressRefused.
    """
    try:
        async with asyncio.timeout(seconds), _open_session(place) as client:
            tools = tuple(
                [
                    parse_listed_tool(_dump_raw_tool(tool, place.secret))
                    async for tool in _iter_offered_tools(client)
                ]
            )
            info = client.server_info
            named = (
                _redact_text(f"{info.name} {info.version}", place.secret)[:120] if info is not None else ""
            )
            return Listing(
                tools=tools, protocol=escape_invisible_characters(client.protocol_version)[:20], server=named
            )
    except BaseException as error:
        cause = _find_root_cause(error)
        if isinstance(cause, EgressRefused):
            raise cause from None
        if isinstance(cause, Exception):
            words = _redact_text(_describe_error(cause), place.secret, cut=True)
            raise ServerUnreachable(server=place.server, detail=words) from None
        raise


async def call_server_tool(
    place: ServerAddress,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    admitted: str,
    key: str,
    watch: SendWatch,
    mutating: bool,
) -> ServiceResponse[Any]:
    """Call a tool once, if it is still what was admitted. The caller sets the deadline.

    `watch` records whether the call itself has been sent.

    Raises: Changed (nothing was called), CallFailed.
    """
    try:
        async with _open_session(place, watch, follows=not mutating) as client:
            now = await _listed_now(client, tool, place.secret)
            if now is None or now.definition is None or now.definition.digest != admitted:
                raise ToolChanged(Drift(server=place.server, tool=tool, admitted=admitted, now=now))
            typed = now.definition.output_schema is not None
            given = {"name": tool, "arguments": dict(arguments), "_meta": {KEY: key}}
            request = CallToolRequest(params=CallToolRequestParams.model_validate(given))
            watch.sent = True
            result = await client.session.send_request(request, _RESULT)
            return _redact_answer(_build_answer(result, typed=typed, mutating=mutating), place.secret)
    except BaseException as error:
        cause = _find_root_cause(error)
        if isinstance(cause, CallFailed):
            raise cause.clean(lambda said: without_secret(said, place.secret, cut=True)) from None
        if isinstance(cause, ToolChanged):
            raise cause from None
        if isinstance(cause, Exception) and not isinstance(cause, TimeoutError):
            failed = _build_failure(cause, watch, mutating=mutating)
            raise failed.clean(lambda said: without_secret(said, place.secret, cut=True)) from None
        raise


@asynccontextmanager
async def _open_session(
    place: ServerAddress, watch: SendWatch | None = None, *, follows: bool = True
) -> AsyncIterator[Client]:
    """Open a session that grants nothing to the server: no sampling, input, roots or cache.

    `follows`: redirects within the server's own origin are followed. A redirect would send a change a
    second time.
    """
    async with AsyncExitStack() as stack:
        if place.argv:
            transport: Any = child_process(place.argv, place.environment)
        else:
            client = guarded_client(
                place.leave, resolver=place.resolver, most_bytes=MOST_BYTES, headers=dict(place.headers),
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            )  # fmt: skip
            if not follows:
                client.max_redirects = 0
            if watch is not None:
                client.event_hooks = {"response": [watch.record_status]}
            await stack.enter_async_context(client)
            transport = streamable_http_client(
                place.url, http_client=client, max_sse_event_size=MOST_BYTES // 2
            )
        info = Implementation(name="interlock", version="1")
        yield await stack.enter_async_context(Client(transport, cache=None, client_info=info))


async def _iter_offered_tools(client: Client) -> AsyncIterator[Tool]:
    """Yield the tools of all pages.

    Raises: TooMuch past the limits; a repeated cursor counts as an endless list.
    """
    cursor: str | None = None
    seen: set[str] = set()
    count = 0
    for _ in range(MOST_PAGES):
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            count += 1
            if count > MOST_TOOLS:
                raise TooMuch(f"more than {MOST_TOOLS} tools")
            yield tool
        cursor = page.next_cursor
        if not cursor:
            return
        if cursor in seen:
            break
        seen.add(cursor)
    raise TooMuch("a list of tools without an end")


async def _listed_now(client: Client, name: str, secret: str) -> ListedTool | None:
    """Return a tool as it is offered now; a name that is offered twice is refused."""
    found = [
        parse_listed_tool(_dump_raw_tool(tool, secret))
        async for tool in _iter_offered_tools(client)
        if tool.name == name
    ]
    if len(found) > 1:
        return ListedTool(name=name, refused="the server offers it twice")
    return found[0] if found else None


def _dump_raw_tool(tool: Tool, secret: str) -> dict[str, Any]:
    """Return a tool as it came, without the secret: its text is shown on pages and in prompts."""
    raw: dict[str, Any] = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    if secret:
        raw = json.loads(without_secret(json.dumps(raw).encode(), secret))
    return raw


def _redact_text(text: str, secret: str, *, cut: bool = False) -> str:
    return escape_invisible_characters(
        without_secret(text.encode("utf-8", "backslashreplace"), secret, cut=cut).decode()
    )


def _build_answer(
    result: CallToolResult | InputRequiredResult, *, typed: bool, mutating: bool
) -> ServiceResponse[Any]:
    """Return the result as an observation.

    Raises: CallFailed for an answer that is not a result.
    """
    if isinstance(result, InputRequiredResult):
        detail = b"the server asked for input during the call; none is given"
        word = "crashed" if mutating else "refused"
        raise CallFailed(word, sent=True, detail=detail, answer=Reply.UNREADABLE)
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    if result.is_error:
        # An error after a change was made has the same form as an error before the change.
        detail = "\n".join(texts)[:KEPT].encode("utf-8", "backslashreplace")
        raise CallFailed("refused", sent=True, detail=detail, answer=Reply.ERROR)
    if typed:
        if result.structured_content is None:
            body = "\n".join(texts)[:KEPT].encode("utf-8", "backslashreplace")
            said: ServiceResponse[Any] = ServiceResponse(body=body, status=0)
            detail = b"the result lacks its structured content"
            raise CallFailed("malformed", sent=True, detail=detail, unread=said)
        return _encode_bounded_answer(result.structured_content)
    left_out = [str(block.type) for block in result.content if not isinstance(block, TextContent)][:50]
    return _encode_bounded_answer({"text": "\n".join(texts), **({"left_out": left_out} if left_out else {})})


def _encode_bounded_answer(value: Any) -> ServiceResponse[Any]:
    try:
        body = orjson.dumps(value)
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        raise CallFailed("malformed", sent=True, detail=b"the result cannot be kept exactly") from None
    whole = sha256(body).hexdigest()
    return ServiceResponse(
        body=body[:KEPT], status=0, size=len(body), whole=whole, truncated=len(body) > KEPT
    )


def _redact_answer(answer: ServiceResponse[Any], secret: str) -> ServiceResponse[Any]:
    body = without_secret(answer.body, secret, cut=answer.truncated)
    return ServiceResponse(
        body=body, status=answer.status, size=answer.size, whole=answer.whole, truncated=answer.truncated
    )


def _find_root_cause(error: BaseException) -> BaseException:
    """Return the root cause of the exception groups that task groups raise, our own exceptions first."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_find_root_cause(one) for one in error.exceptions]
    ours = (ToolChanged, CallFailed, EgressRefused, TooMuch)
    return next((one for one in causes if isinstance(one, ours)), causes[0])


def _build_failure(error: Exception, watch: SendWatch, *, mutating: bool) -> CallFailed:
    """Map an exception to a failure with one of the error codes of ToolFailed.

    Before the call was sent it was not made. After that, only a result shows whether a change took effect.
    `answer` is the class of the answer, which limits what it proves.
    """
    words = _describe_error(error).encode("utf-8", "backslashreplace")
    if isinstance(error, EgressRefused):
        word = "crashed" if mutating and watch.sent else "refused"
        return CallFailed(word, sent=watch.sent, detail=words, answer=Reply.NONE)
    if not watch.sent:
        return CallFailed("unreachable", sent=False, transient=True, detail=words)
    code = error.code if isinstance(error, MCPError) else 0
    if not mutating and code in NOT_TAKEN:
        return CallFailed("refused", sent=True, detail=words)
    if not mutating and (code in NOT_READ or isinstance(error, TooMuch | ValidationError)):
        return CallFailed("malformed", sent=True, detail=words, unread=too_much(error))
    return CallFailed(
        "crashed", sent=True, transient=True, detail=words, answer=_classify_answer(error, code, watch),
        unread=too_much(error),
    )  # fmt: skip


def _classify_answer(error: Exception, code: int, watch: SendWatch) -> Reply:
    """Return the class of the answer behind an error after the call was sent.

    An error status decides; otherwise the server's error code does.
    """
    if watch.status >= 400:
        return answer_of(watch.status)
    if code in NOT_READ or isinstance(error, TooMuch | ValidationError):
        return Reply.UNREADABLE
    return Reply.NONE if code in (0, *NO_ANSWER) else Reply.ERROR


def _describe_error(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ValidationError):
        return "what it said is not of the protocol"
    if isinstance(error, EgressRefused):
        return str(error.data["detail"])
    if isinstance(error, MCPError):
        return f"it answered with an error: {error.message}"[:500]
    return f"{type(error).__name__}: {error}"[:500]

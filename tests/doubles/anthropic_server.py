"""A loopback server that speaks the messages API, strictly, from a script; the twin of openai_server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
import pytest

from tests.doubles.http_server import ABSENT as ABSENT
from tests.doubles.http_server import Json, ScriptedServer, Seen, expect, reply
from tests.doubles.http_server import Reply as Reply
from tests.doubles.http_server import html as html

USAGE: Json = {"input_tokens": 120, "output_tokens": 30}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")


@dataclass(frozen=True)
class ToolUse:
    """A tool_use block of a reply."""

    name: str
    input: Any = field(default_factory=dict)
    id: str = "toolu_1"

    def document(self) -> Json:
        """The block as the API writes it."""
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": self.input}


def content(*blocks: Json, stop: str, usage: Any = USAGE) -> Reply:
    """A message with exactly these blocks."""
    told = {} if usage is ABSENT else {"usage": usage}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "loopback-1"}
    return reply({**head, "content": list(blocks), "stop_reason": stop, "stop_sequence": None, **told})


def said(text: str, *, stop: str = "end_turn", usage: Any = USAGE) -> Reply:
    """An answer in text."""
    return content({"type": "text", "text": text}, stop=stop, usage=usage)


def uses(*asked: ToolUse, text: str | None = None, usage: Any = USAGE) -> Reply:
    """One reply that asks for these tools."""
    before = [{"type": "text", "text": text}] if text else []
    return content(*before, *(use.document() for use in asked), stop="tool_use", usage=usage)


def refused() -> Reply:
    """The model declines: no content, and a stop reason that says so."""
    return content(stop="refusal")


def failing(status: int = 500, kind: str = "api_error", message: str = "Internal server error") -> Reply:
    """The API's error document."""
    return reply({"type": "error", "error": {"type": kind, "message": message}}, status)


def rate_limited(retry_after: str = "1") -> Reply:
    """429 with Retry-After."""
    document = {"type": "error", "error": {"type": "rate_limit_error", "message": "Too many requests."}}
    return reply(document, 429, retry_after=retry_after)


class AnthropicServer(ScriptedServer):
    """See the module. `key` None accepts every key, but not the lack of one; `streams` wants requests for
    streams, where it is set.
    """

    streams = False

    path = "/v1/messages"

    def __init__(self, *script: Reply, key: str | None = None) -> None:
        super().__init__(*script)
        self._key = key

    @property
    def url(self) -> str:
        """The base URL a client is given."""
        return self.origin

    def answer(self, seen: Seen) -> Reply:
        """As the script says; 401 where the key is missing or another."""
        # The client library of 2026 sends its key as a bearer token; older ones and plain HTTP as x-api-key.
        key = seen.headers.get("x-api-key") or seen.headers.get("authorization", "").removeprefix("Bearer ")
        if not key or (self._key is not None and key != self._key):
            self.seen.append(seen)
            return failing(401, "authentication_error", "invalid x-api-key")
        return super().answer(seen)

    def problems(self, seen: Seen) -> list[str]:
        """What in a request breaks the API."""
        document = seen.document
        if not isinstance(document, dict):
            return ["the body must be a JSON object"]
        for name in ("messages", "tools"):
            given = document.get(name, [])
            if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
                return [f"{name}: a list of objects"]
        tokens = document.get("max_tokens")
        return [
            *expect("anthropic-version" in seen.headers, "anthropic-version: header is required"),
            *expect(_text(document.get("model")), "model: a name is required"),
            *expect(type(tokens) is int and tokens > 0, "max_tokens: a positive integer is required"),
            *expect(document.get("stream", False) is self.streams, "stream: not what this server does"),
            *expect(_spoken(document.get("system", "-")), "system: text is required"),
            *_tools(document),
            *_messages(document.get("messages")),
        ]

    def refuse(self, status: int, message: str) -> Reply:
        """The API's error document."""
        kinds = {404: "not_found_error", 500: "api_error"}
        return failing(status, kinds.get(status, "invalid_request_error"), message)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _spoken(value: Any) -> bool:
    """Text, or blocks of which the text ones are not empty."""
    if not isinstance(value, list):
        return _text(value)
    return bool(value) and all(
        isinstance(block, dict) and (block.get("type") != "text" or _text(block.get("text")))
        for block in value
    )


def _tools(document: Json) -> list[str]:
    tools = document.get("tools")
    if not tools:
        return expect("tool_choice" not in document, "tool_choice: only with tools")
    names = [tool.get("name") for tool in tools]
    choice = document.get("tool_choice", {"type": "auto"})
    return [
        *expect(len(set(names)) == len(names), "tools: two have the same name"),
        *expect(choice.get("type") in {"auto", "any", "tool", "none"}, "tool_choice.type"),
        *(complaint for tool in tools for complaint in _tool(tool)),
    ]


def _tool(tool: Json) -> list[str]:
    name, schema = tool.get("name"), tool.get("input_schema")
    valid = (
        isinstance(schema, dict) and schema.get("type") == "object" and jsonschema_rs.meta.is_valid(schema)
    )
    return [
        *expect(bool(_NAME.fullmatch(str(name))), f"tools: the name {name!r} is not {_NAME.pattern}"),
        *expect(valid, f"tools: {name}: input_schema must be a JSON schema of an object"),
    ]


def _messages(messages: Any) -> list[str]:
    if not messages:
        return ["messages: at least one"]
    waiting: list[str] = []
    found = expect(messages[0].get("role") == "user", "messages: the first is the user's")
    found += expect(messages[-1].get("role") == "user", "messages: the last is the user's")
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        found += expect(message.get("role") in {"user", "assistant"}, f"{where}.role: user or assistant")
        found += expect(
            _spoken(message.get("content")), f"{where}.content: text or blocks that are not empty"
        )
        blocks = [block for block in _blocks(message) if isinstance(block, dict)]
        found += _results(blocks, waiting, where)
        waiting = [block.get("id", "") for block in blocks if block.get("type") == "tool_use"]
        found += _uses(blocks, waiting, message, where)
    return found


def _blocks(message: Json) -> list[Any]:
    blocks = message.get("content")
    return blocks if isinstance(blocks, list) else []


def _results(blocks: list[Json], waiting: list[str], where: str) -> list[str]:
    """Each use of the message before is answered here, once, before anything else is said."""
    kinds = [block.get("type") for block in blocks]
    given = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    first = all(kind == "tool_result" for kind in kinds[: len(given)])
    return [
        *expect(sorted(map(str, given)) == sorted(waiting), f"{where}: results {given} for uses {waiting}"),
        *expect(first, f"{where}: results stand before other blocks"),
    ]


def _uses(blocks: list[Json], names: list[str], message: Json, where: str) -> list[str]:
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    return [
        *expect(not uses or message.get("role") == "assistant", f"{where}: only the assistant uses tools"),
        *expect(len(set(names)) == len(names), f"{where}: tool_use ids must be unique"),
        *expect(all(_ID.fullmatch(str(name)) for name in names), f"{where}: a tool_use id is {_ID.pattern}"),
        *expect(
            all(isinstance(use.get("input"), dict) for use in uses), f"{where}: tool_use.input: an object"
        ),
    ]


@pytest.fixture
def anthropic_server() -> Iterator[AnthropicServer]:
    """A running server with an empty script; `play` fills it."""
    with AnthropicServer() as server:
        yield server

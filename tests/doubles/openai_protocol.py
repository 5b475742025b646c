"""What a strict server of the chat-completions protocol demands of a request."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs

from tests.doubles.http_server import Json, expect

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWN = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens",
    "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "stream",
    "response_format", "user", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty",
    "logit_bias", "metadata", "store", "reasoning_effort", "service_tier", "prompt_cache_key",
    "safety_identifier", "verbosity",
}  # fmt: skip


def problems(document: Any, *, streams: bool = False) -> list[str]:
    """Everything that is wrong with a request's document; empty for a conformant one. `streams`: the server
    takes nothing but requests for a stream that tells its usage.
    """
    if not isinstance(document, dict):
        return ["the body must be a JSON object"]
    unknown = sorted(set(document) - _KNOWN - ({"stream_options"} if streams else set()))
    asked = document.get("stream_options") == {"include_usage": True} and document.get("stream") is True
    return [
        *expect(not unknown, f"unknown parameters: {unknown}"),
        *expect(_text(document.get("model")), "model: a name is required"),
        *expect(asked if streams else not document.get("stream"), "stream: not what this server does"),
        *expect(document.get("n", 1) == 1, "n: only 1"),
        *_limits(document),
        *_tools(document),
        *_messages(document.get("messages")),
    ]


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _limits(document: Json) -> list[str]:
    given = [name for name in ("max_tokens", "max_completion_tokens") if name in document]
    temperature = document.get("temperature", 1)
    return [
        *expect(len(given) < 2, "max_tokens and max_completion_tokens exclude each other"),
        *(
            complaint
            for name in given
            for complaint in expect(
                type(document[name]) is int and document[name] > 0, f"{name}: a positive integer"
            )
        ),
        *expect(
            isinstance(temperature, int | float) and 0 <= temperature <= 2, "temperature: between 0 and 2"
        ),
    ]


def _tools(document: Json) -> list[str]:
    if "tools" not in document:
        return expect("tool_choice" not in document, "tool_choice: only with tools")
    tools = document["tools"]
    if not isinstance(tools, list) or not 0 < len(tools) <= 128:
        return ["tools: a list of 1 to 128"]
    names = [_function(tool).get("name") for tool in tools]
    choice = document.get("tool_choice", "auto")
    wanted = _function(choice).get("name") if isinstance(choice, dict) else None
    return [
        *(complaint for index, tool in enumerate(tools) for complaint in _tool(tool, f"tools[{index}]")),
        *expect(len({str(name) for name in names}) == len(names), "tools: two have the same name"),
        *expect(
            wanted in names if isinstance(choice, dict) else choice in {"none", "auto", "required"},
            "tool_choice: none, auto, required or a function that is offered",
        ),
    ]


def _function(value: Any) -> Json:
    inner = value.get("function") if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _tool(tool: Any, where: str) -> list[str]:
    function = _function(tool)
    schema = function.get("parameters", {"type": "object"})
    return [
        *expect(isinstance(tool, dict) and tool.get("type") == "function", f"{where}.type: function"),
        *expect(
            bool(_NAME.fullmatch(str(function.get("name", "")))), f"{where}.function.name: {_NAME.pattern}"
        ),
        *expect(isinstance(function.get("description", ""), str), f"{where}.function.description: a string"),
        *expect(
            isinstance(schema, dict)
            and schema.get("type") == "object"
            and jsonschema_rs.meta.is_valid(schema),
            f"{where}.function.parameters: a JSON schema of an object",
        ),
        *(_strict(schema, f"{where}.function.parameters") if function.get("strict") else []),
    ]


def _strict(schema: Any, where: str) -> list[str]:
    """Under `strict` every object is closed and every property required, at every depth."""
    if isinstance(schema, list):
        return [complaint for item in schema for complaint in _strict(item, where)]
    if not isinstance(schema, dict):
        return []
    below = [complaint for value in schema.values() for complaint in _strict(value, where)]
    if schema.get("type") != "object":
        return below
    closed = schema.get("additionalProperties") is False
    whole = set(schema.get("required", [])) == set(schema.get("properties", {}))
    return [
        *expect(closed and whole, f"{where}: strict needs closed objects, all properties required"),
        *below,
    ]


def _messages(messages: Any) -> list[str]:
    if not isinstance(messages, list) or not messages:
        return ["messages: at least one"]
    return _Conversation().read(messages)


class _Conversation:
    """Reads messages in order and remembers which calls still want their answer."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._begun = False
        self._found: list[str] = []

    def read(self, messages: list[Any]) -> list[str]:
        for index, message in enumerate(messages):
            where = f"messages[{index}]"
            if not isinstance(message, dict):
                return [*self._found, f"{where}: an object"]
            self._message(message, where)
        last = messages[-1].get("role")
        self._say(not self._open, f"messages: calls without an answer: {self._open}")
        self._say(last in {"user", "tool"}, f"messages: the last one is {last}'s, nothing is asked")
        return self._found

    def _say(self, condition: bool, complaint: str) -> None:
        self._found += expect(condition, complaint)

    def _message(self, message: Json, where: str) -> None:
        role = message.get("role")
        if role != "tool":
            self._say(not self._open, f"{where}: {role} speaks before calls {self._open} were answered")
            self._open = []
        readers = {
            "system": self._system,
            "developer": self._system,
            "user": self._user,
            "assistant": self._assistant,
            "tool": self._tool,
        }
        reader = readers.get(role) if isinstance(role, str) else None
        if reader is None:
            self._say(False, f"{where}.role: {role!r} is none of {sorted(readers)}")
        else:
            reader(message, where)

    def _system(self, message: Json, where: str) -> None:
        self._say(not self._begun, f"{where}: instructions stand before the conversation")
        self._say(_content(message), f"{where}.content: text is required")

    def _user(self, message: Json, where: str) -> None:
        self._begun = True
        self._say(_content(message), f"{where}.content: text is required")

    def _assistant(self, message: Json, where: str) -> None:
        self._say(self._begun, f"{where}: the assistant speaks before anybody asked")
        if message.get("tool_calls") is None:
            said = _content(message) or _text(message.get("refusal"))
            self._say(said, f"{where}.content: text is required where there are no calls")
            return
        calls = message["tool_calls"]
        self._say(isinstance(calls, list) and bool(calls), f"{where}.tool_calls: at least one")
        self._say(
            message.get("content") is None or isinstance(message["content"], str | list), f"{where}.content"
        )
        for index, call in enumerate(calls if isinstance(calls, list) else []):
            self._call(call, f"{where}.tool_calls[{index}]")

    def _call(self, call: Any, where: str) -> None:
        function, name = _function(call), str(_function(call).get("name", ""))
        self._say(isinstance(call, dict) and call.get("type") == "function", f"{where}.type: function")
        self._say(bool(_NAME.fullmatch(name)), f"{where}.function.name: {_NAME.pattern}")
        self._say(isinstance(function.get("arguments"), str), f"{where}.function.arguments: a string of JSON")
        number = call.get("id") if isinstance(call, dict) else None
        self._say(_text(number), f"{where}.id: required")
        self._say(number not in self._open, f"{where}.id: {number} is given twice")
        self._open.append(str(number))

    def _tool(self, message: Json, where: str) -> None:
        number = message.get("tool_call_id")
        self._say(number in self._open, f"{where}.tool_call_id: {number!r} is no open call of {self._open}")
        self._say(isinstance(message.get("content"), str | list), f"{where}.content: text is required")
        if number in self._open:
            self._open.remove(str(number))


def _content(message: Json) -> bool:
    """Text, or parts of text."""
    content = message.get("content")
    if not isinstance(content, list):
        return _text(content)
    return bool(content) and all(
        isinstance(part, dict) and part.get("type") == "text" and _text(part.get("text")) for part in content
    )


def well_formed(arguments: str) -> bool:
    """Whether a call's arguments are JSON; some servers refuse a conversation that repeats others."""
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True

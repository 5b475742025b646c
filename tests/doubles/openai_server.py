"""A server that is not ours: it speaks the chat-completions protocol on loopback, strictly, from a script.

with OpenAIServer(calls(Call("clock.now", {})), said("It is noon.")) as server:
    ...  # base URL: server.url
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.doubles import openai_protocol
from tests.doubles.http_server import ABSENT as ABSENT
from tests.doubles.http_server import Json, ScriptedServer, Seen, reply
from tests.doubles.http_server import Reply as Reply
from tests.doubles.http_server import html as html

USAGE: Json = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}


def usage(prompt: Any = 120, completion: Any = 30) -> Json:
    """A usage document; the figures may be as wrong as the test wants them."""
    both = isinstance(prompt, int) and isinstance(completion, int)
    total = prompt + completion if both else prompt
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


@dataclass(frozen=True)
class Call:
    """A tool call. Arguments given as text go out as they stand; `id` None leaves the member out."""

    name: str
    arguments: Json | str = field(default_factory=dict)
    id: str | None = "call_1"

    def document(self) -> Json:
        """The call as the protocol writes it."""
        arguments = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        named = {"id": self.id} if self.id is not None else {}
        return {**named, "type": "function", "function": {"name": self.name, "arguments": arguments}}


def choices(*found: Any, usage: Any = USAGE) -> Reply:
    """A completion with exactly these choices: none, null, or whatever the test wants."""
    told = {} if usage is ABSENT else {"usage": usage}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": "loopback-1"}
    return reply({**head, "choices": list(found), **told})


def _choice(message: Json, finish: str) -> Json:
    return {
        "index": 0,
        "message": {"role": "assistant", **message},
        "logprobs": None,
        "finish_reason": finish,
    }


def said(text: str | None, *, finish: str = "stop", usage: Any = USAGE) -> Reply:
    """An answer in text; None or "" is a reply with neither answer nor call."""
    return choices(_choice({"content": text, "refusal": None}, finish), usage=usage)


def refused(text: str = "I cannot help with that.") -> Reply:
    """The model declines."""
    return choices(_choice({"content": None, "refusal": text}, "stop"))


def calls(*asked: Call, text: str | None = None, finish: str = "tool_calls", usage: Any = USAGE) -> Reply:
    """One reply that asks for these tools."""
    message = {"content": text, "refusal": None, "tool_calls": [call.document() for call in asked]}
    return choices(_choice(message, finish), usage=usage)


def failing(status: int = 500, message: str = "The server had an error.") -> Reply:
    """The protocol's error document."""
    return reply({"error": {"message": message, "type": "error", "param": None, "code": None}}, status)


def rate_limited(retry_after: str = "1") -> Reply:
    """429 with Retry-After, in seconds or however the test wants it."""
    document = {
        "message": "Rate limit reached.",
        "type": "tokens",
        "param": None,
        "code": "rate_limit_exceeded",
    }
    return reply({"error": document}, 429, retry_after=retry_after)


class OpenAIServer(ScriptedServer):
    """See the module. `key` None accepts every caller; `strict_arguments` wants JSON in the history;
    `streams` wants requests for streams, where it is set.
    """

    streams = False

    path = "/v1/chat/completions"

    def __init__(
        self, *script: Reply, key: str | None = None, strict_arguments: bool = False, port: int = 0
    ) -> None:
        super().__init__(*script, port=port)
        self._key = key
        self._strict = strict_arguments

    @property
    def url(self) -> str:
        """The base URL a client is given."""
        return self.origin + "/v1"

    def answer(self, seen: Seen) -> Reply:
        """As the script says; 401 where the key is another."""
        if self._key is not None and seen.headers.get("authorization") != f"Bearer {self._key}":
            self.seen.append(seen)
            return self.refuse(401, "Incorrect API key provided.")
        return super().answer(seen)

    def problems(self, seen: Seen) -> list[str]:
        """See openai_protocol."""
        found = openai_protocol.problems(seen.document, streams=self.streams)
        if found or not self._strict:
            return found
        asked = [call for message in seen.document["messages"] for call in message.get("tool_calls") or []]
        return [
            f"{call['id']}: the arguments are no JSON"
            for call in asked
            if not openai_protocol.well_formed(call["function"]["arguments"])
        ]

    def refuse(self, status: int, message: str) -> Reply:
        """The protocol's error document."""
        return failing(status, message)


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A running server with an empty script; `play` fills it."""
    with OpenAIServer() as server:
        yield server

"""Assembles a streamed reply into the document that a whole reply would have been (R-LOOP-9, M8, M9).

A hostile or broken server can send anything. Events are parsed within bounds, and the resulting document is
then sanitized like any other reply: streaming only changes when the text is shown. A usage figure is used
only if nothing was written after it, not even a thought that is not kept: a stream that reports usage early
or in between reports too little.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from orchestrator.llm.gateways.providers.response_sanitizing import (
    BrokenReply,
    Json,
    beside_block,
    beside_choice,
    count_unkept_bytes,
    document_of,
    flatten_content,
    text_bytes,
)
from orchestrator.llm.gateways.response import MAX_NAME

# One event per token, each with its frame: the stream is many times larger than its text.
MAX_STREAM: Final = 32 * 1024 * 1024
MAX_REPLY: Final = 4 * 1024 * 1024
CALL_BYTES: Final = 64
# A name is cut to MAX_NAME letters of at most this many bytes in total; the rest is not even assembled.
LONGEST_NAME: Final = 4 * MAX_NAME
DONE: Final = b"[DONE]"
Say = Callable[[str], None]


class ReplyStream(ABC):
    """One streamed reply. `say` gets each piece of its text: never arguments of calls, never thoughts.

    `over`: the server reported the end of the stream. `unkept` counts bytes of text that are not part of
    the reply's document, such as thoughts, for our own count of usage.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self.over = False
        self.unkept = 0
        self._arrived = self._size = self._tail_size = self._data_size = 0
        self._tail: list[bytes] = []
        self._data: list[bytes] = []
        self._head: dict[str, str] = {}
        self._begun = False
        self._finish: str | None = None
        self._usage: Mapping[str, Any] | None = None

    def feed(self, chunk: bytes) -> None:
        """Add the bytes that arrived.

        Raises: BrokenReply.
        """
        self._arrived += len(chunk)
        if self._arrived > MAX_STREAM:
            raise BrokenReply(f"the stream is larger than {MAX_STREAM} bytes")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._tail.append(chunk)
            self._hold(tail=self._tail_size + len(chunk))
            return
        lines = b"".join((*self._tail, chunk)).splitlines(keepends=True)
        # An incomplete line, or one that may be half of a line break.
        self._tail = [] if lines[-1].endswith(b"\n") else [lines.pop()]
        for line in lines:
            self._line(line.rstrip(b"\r\n"))
        self._hold(tail=sum(map(len, self._tail)))

    def body(self) -> bytes:
        """Return the whole reply's JSON.

        Raises: BrokenReply where the stream broke off, or is too large.
        """
        self._line(b"".join(self._tail).rstrip(b"\r\n"))
        self._line(b"")
        # A stream that just ends may have been cut off. Where nothing had begun, the body is empty and
        # cleaning reports the fault.
        if self._finish is None and (self._begun or not self.over):
            raise BrokenReply("the stream broke off")
        whole = _encode_json(self._document())
        if len(whole) > MAX_REPLY:
            raise BrokenReply(_too_large())
        return whole

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._hold(data=self._data_size + len(line))
        elif not line and self._data:
            data, self._data, self._data_size = b"\n".join(self._data).strip(), [], 0
            if data == DONE:
                self.over = True
            elif data and not self.over:
                self._heard(document_of(data))

    def _hold(self, *, tail: int | None = None, data: int | None = None) -> None:
        """Track the bytes that wait for the rest of their line or event.

        One event is never larger than a reply.

        Raises: BrokenReply.
        """
        self._tail_size = self._tail_size if tail is None else tail
        self._data_size = self._data_size if data is None else data
        if self._tail_size + self._data_size > MAX_REPLY:
            raise BrokenReply(_too_large())

    def _heard(self, event: Json) -> None:
        if error := event.get("error"):
            raise BrokenReply(f"the provider broke off: {_format_error(error)}")
        self._event(event)

    @abstractmethod
    def _event(self, event: Json) -> None:
        """Process one event.

        Raises: BrokenReply.
        """

    @abstractmethod
    def _document(self) -> Json:
        """Return the document that all events amount to."""

    def _wrote(self, size: int) -> None:
        """Count more bytes of the reply, and drop any usage figure that was reported before them.

        Raises: BrokenReply where the reply is too large.
        """
        self._usage = None
        self._size += size
        if self._size > MAX_REPLY:
            raise BrokenReply(_too_large())

    def _count_passed_bytes(self, size: int) -> None:
        """Count bytes that were written and are not kept, because they cost the same."""
        if size:
            self._wrote(size)
            self.unkept += size

    def _note_head(self, document: Json) -> None:
        for name in ("id", "model"):
            if isinstance(document.get(name), str):
                self._head.setdefault(name, document[name])


@dataclass(slots=True)
class _Call:
    """One requested call, assembled from its parts."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def document(self) -> Json:
        named = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": named}


class OpenAIStream(ReplyStream):
    """Chunks of a chat completion."""

    def __init__(self, say: Say) -> None:
        super().__init__(say)
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[object, _Call] = {}

    def _event(self, event: Json) -> None:
        self._note_head(event)
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                self._choice(choice)
            elif isinstance(choice, dict):
                self._count_passed_bytes(text_bytes(choice.get("delta")))
        if isinstance(event.get("usage"), dict):
            self._usage = event["usage"]

    def _choice(self, choice: Json) -> None:
        self._begun = True
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._count_passed_bytes(beside_choice(delta))
            if text := _extract_text(delta.get("content")):
                self._wrote(len(text))
                self._text.append(text)
                self._say(text)
            if refusal := _extract_text(delta.get("refusal")):
                self._wrote(len(refusal))
                self._refusal.append(refusal)
            calls = delta.get("tool_calls")
            for part in calls if isinstance(calls, list) else ():
                if isinstance(part, dict):
                    self._call(part)
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]

    def _call(self, part: Json) -> None:
        call, function = self._call_of(part), part.get("function")
        function = function if isinstance(function, dict) else {}
        if isinstance(part.get("id"), str) and not call.id:
            self._wrote(len(part["id"]))
            call.id = part["id"]
        name, given = function.get("name"), function.get("arguments")
        # Some servers repeat the name in every part.
        if isinstance(name, str) and name != call.name:
            self._wrote(len(name))
            call.name += name[: LONGEST_NAME - len(call.name)]
        if given is not None:
            text = given if isinstance(given, str) else _encode_json(given).decode()
            self._wrote(len(text))
            call.arguments.append(text)

    def _call_of(self, part: Json) -> _Call:
        """Return the call that a part belongs to: by its index, else by its id, else the previous call."""
        at, last = part.get("index"), next(reversed(self._calls), None)
        key: object = at
        if isinstance(at, bool) or not isinstance(at, int):
            given = part.get("id")
            fresh = last is None or (isinstance(given, str) and given and given != self._calls[last].id)
            key = ("unplaced", len(self._calls)) if fresh else last
        if key not in self._calls:
            self._wrote(CALL_BYTES)
            self._calls[key] = _Call()
        return self._calls[key]

    def _document(self) -> Json:
        message: Json = {"content": "".join(self._text), "refusal": "".join(self._refusal)}
        if self._calls:
            message["tool_calls"] = [call.document() for call in self._calls.values()]
        said = [{"index": 0, "message": message, "finish_reason": self._finish}] if self._begun else []
        return {**self._head, "choices": said, "usage": self._usage}


@dataclass(slots=True)
class _Block:
    """One block of a message, assembled from its parts."""

    given: Json
    text: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def document(self) -> Json:
        if self.given.get("type") == "tool_use":
            return {**self.given, "input": self._input()}
        return {"type": "text", "text": "".join(self.text)}

    def _input(self) -> Any:
        """Return the input; text that is not JSON is kept as text for the core to refuse."""
        written = "".join(self.arguments)
        if not written.strip():
            return self.given.get("input")
        try:
            return orjson.loads(written)
        except orjson.JSONDecodeError:
            return written


class AnthropicStream(ReplyStream):
    """Events of a message."""

    def __init__(self, say: Say) -> None:
        super().__init__(say)
        self._at_first: Json = {}
        self._blocks: dict[object, _Block] = {}

    def _event(self, event: Json) -> None:
        kind, delta = event.get("type"), event.get("delta")
        if kind == "message_start":
            self._starts(event.get("message"))
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            self._block(event.get("index"), event["content_block"])
        elif kind == "content_block_delta" and isinstance(delta, dict):
            self._part(event.get("index"), delta)
        elif kind == "message_delta":
            self._ends(delta, event.get("usage"))
        elif kind == "message_stop":
            self.over = True

    def _starts(self, message: Any) -> None:
        if isinstance(message, dict):
            self._begun = True
            self._note_head(message)
            usage = message.get("usage")
            self._at_first = usage if isinstance(usage, dict) else {}

    def _block(self, at: Any, given: Json) -> _Block:
        self._begun = True
        self._wrote(CALL_BYTES + sum(len(one) for one in given.values() if isinstance(one, str)))
        self.unkept += beside_block(given)
        kept: Json = {name: given[name] for name in ("type", "id", "name", "input") if name in given}
        block = self._blocks[_normalize_index(at)] = _Block(kept)
        if text := _extract_text(given.get("text")):
            self._says(block, text)
        return block

    def _part(self, at: Any, delta: Json) -> None:
        kind = delta.get("type")
        if kind == "text_delta" and (text := _extract_text(delta.get("text"))):
            self._says(self._blocks.get(_normalize_index(at)) or self._block(at, {"type": "text"}), text)
        elif kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
            block = self._blocks.get(_normalize_index(at)) or self._block(at, {"type": "tool_use"})
            self._wrote(len(delta["partial_json"]))
            block.arguments.append(delta["partial_json"])
            if block.given.get("type") != "tool_use":
                self.unkept += text_bytes(delta["partial_json"])
        else:
            self._count_passed_bytes(count_unkept_bytes(delta, ("type",)))

    def _says(self, block: _Block, text: str) -> None:
        self._wrote(len(text))
        block.text.append(text)
        self._say(text)

    def _ends(self, delta: Any, usage: Any) -> None:
        if isinstance(delta, dict) and isinstance(delta.get("stop_reason"), str):
            self._finish = delta["stop_reason"]
        # The first event only reports the output so far; the final count is here.
        if isinstance(usage, dict) and "output_tokens" in usage:
            told = {name: one for name, one in usage.items() if one is not None}
            self._usage = self._at_first | {
                name: _pick_larger_figure(self._at_first.get(name), told[name]) for name in told
            }

    def _document(self) -> Json:
        if not self._begun:
            return {}
        blocks = [block.document() for block in self._blocks.values()]
        return {**self._head, "content": blocks, "stop_reason": self._finish, "usage": self._usage}


STREAMS: Final[Mapping[str, Callable[[Say], ReplyStream]]] = {
    "openai": OpenAIStream, "anthropic": AnthropicStream,
}  # fmt: skip
# The request members that make the provider stream, and report its usage at the end.
ASKED: Final[Mapping[str, Json]] = {
    "openai": {"stream": True, "stream_options": {"include_usage": True}}, "anthropic": {"stream": True},
}  # fmt: skip


def _extract_text(value: Any) -> str:
    found = flatten_content(value)
    return found if isinstance(found, str) else ""


def _encode_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise BrokenReply(str(error)) from None


def _pick_larger_figure(first: Any, then: Any) -> Any:
    """Return the greater of two figures, because reported usage is not taken back.

    Where the figures cannot be compared, the second one is returned as it is.
    """
    figures = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (first, then))
    return max(first, then) if figures and then >= 0 else then


def _normalize_index(at: Any) -> object:
    return at if isinstance(at, int) else None


def _format_error(error: Any) -> str:
    found = error.get("message") or error.get("type") if isinstance(error, dict) else error
    return str(found)[:200]


def _too_large() -> str:
    return f"the reply is larger than {MAX_REPLY} bytes"

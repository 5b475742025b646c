"""Sanitizes replies of the two protocols before any library parses them (M7, M8, M9, M11, M13).

A hostile or broken server can send anything. Each reader keeps the members that have the right type and are
bounded, and builds a conformant document from them, so that the library cannot fail on it. Usage is kept
separately, as reported: the library would drop a wrong figure, or crash on a missing one.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from orchestrator.llm.gateways.response import (
    MAX_ARGUMENTS,
    MAX_CALLS,
    MAX_ID,
    MAX_NAME,
    MAX_TEXT,
    distinct_ids,
    truncate_utf8,
)
from tenancy.core.json_reading import read_json

Json = dict[str, Any]
OPENAI_FINISH = ("stop", "length", "tool_calls", "content_filter", "function_call")
UNREADABLE = "__unreadable__"
ANTHROPIC_FINISH = ("end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal")


class BrokenReply(Exception):
    """A body that is no reply; the text says why. Caught by the transport, seen by nobody else."""


class Assembly(Protocol):
    """A streamed reply that is being assembled (llm/stream_assembler.py)."""

    over: bool
    unkept: int

    def feed(self, chunk: bytes) -> None:
        """Add the bytes that arrived.

        Raises: BrokenReply.
        """
        ...

    def body(self) -> bytes:
        """Return the whole reply's JSON.

        Raises: BrokenReply.
        """
        ...


@dataclass(slots=True, kw_only=True)
class Capture:
    """The observations of one HTTP exchange: filled by the transport, read by the gateway.

    `assemble` is set where a stream was requested. `until` is the call's deadline by the loop's clock.
    `cut`: the connection broke in the middle of the reply. `unkept` counts bytes of text that were written
    and are not part of the reply, such as thoughts. `secret` is the key that was sent: it is removed from a
    body before the body is read.
    """

    clean: Callable[[Json, "Capture"], Json]
    assemble: Callable[[], Assembly] | None = None
    secret: str = ""
    until: float | None = None
    status: int | None = None
    fault: str | None = None
    cut: bool = False
    usage: Mapping[str, object] = field(default_factory=dict)
    finish: str = "stop"
    dropped: int = 0
    unkept: int = 0
    capped: list[str] = field(default_factory=list)


def document_of(body: bytes) -> Json:
    """Parse the JSON object in a body.

    Raises: BrokenReply.
    """
    try:
        document = read_json(body)
    except orjson.JSONDecodeError as error:
        raise BrokenReply(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BrokenReply(f"a JSON {type(document).__name__} where an object belongs")
    return document


def clean_openai(document: Json, capture: Capture) -> Json:
    """Rebuild a chat completion from its usable members.

    Raises: BrokenReply.
    """
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BrokenReply("no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise BrokenReply("a choice without a message")
    _note_openai_usage(document.get("usage"), capture)
    capture.unkept += beside_choice(message) + text_bytes(
        [one.get("message") for one in choices[1:] if isinstance(one, dict)]
    )
    finish = _truncate_identifier(choices[0].get("finish_reason"))
    capture.finish = finish or "stop"
    calls = _openai_calls(message.get("tool_calls"), capture)
    rebuilt: Json = {
        "role": "assistant", "content": _truncate_text(flatten_content(message.get("content")), capture),
        "refusal": _truncate_text(message.get("refusal"), capture) or None,
    }  # fmt: skip
    if calls:
        rebuilt["tool_calls"] = calls
    choice = {"index": 0, "message": rebuilt, "logprobs": None}
    return {
        "id": _truncate_identifier(document.get("id")) or "reply", "object": "chat.completion", "created": 1,
        "model": _truncate_identifier(document.get("model")) or "unnamed",
        "choices": [choice | {"finish_reason": finish if finish in OPENAI_FINISH else "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }  # fmt: skip


def clean_anthropic(document: Json, capture: Capture) -> Json:
    """Rebuild a message from its usable members.

    Raises: BrokenReply.
    """
    blocks = document.get("content")
    if not isinstance(blocks, list):
        raise BrokenReply("no content")
    found = [block for block in blocks if isinstance(block, dict)]
    texts = "".join(block["text"] for block in found if isinstance(block.get("text"), str))
    uses = [block for block in found if block.get("type") == "tool_use"]
    _note_anthropic_usage(document.get("usage"), capture)
    capture.unkept += sum(map(beside_block, found))
    finish = _truncate_identifier(document.get("stop_reason"))
    capture.finish = finish or "stop"
    kept = _limit_calls(uses, capture)
    ids = distinct_ids([_truncate_identifier(use.get("id")) for use in kept])
    said = _truncate_text(texts, capture)
    content: list[Json] = [{"type": "text", "text": said}] if said else []
    content.extend(
        {
            "type": "tool_use",
            "id": call_id,
            "name": _truncate_name(use.get("name")),
            "input": _sanitize_input(use.get("input"), call_id, capture),
        }
        for call_id, use in zip(ids, kept, strict=True)
    )
    return {
        "id": _truncate_identifier(document.get("id")) or "reply",
        "type": "message",
        "role": "assistant",
        "model": _truncate_identifier(document.get("model")) or "unnamed",
        "content": content,
        "stop_sequence": None,
        "stop_reason": finish if finish in ANTHROPIC_FINISH else "end_turn",
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _openai_calls(asked: Any, capture: Capture) -> list[Json]:
    calls = [call for call in asked if isinstance(call, dict)] if isinstance(asked, list) else []
    kept = _limit_calls(calls, capture)
    ids = distinct_ids([_truncate_identifier(call.get("id")) for call in kept])
    return [_openai_call(call, call_id, capture) for call_id, call in zip(ids, kept, strict=True)]


def _openai_call(call: Json, call_id: str, capture: Capture) -> Json:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = _truncate_arguments(function.get("arguments"), call_id, capture)
    named = {"name": _truncate_name(function.get("name")), "arguments": arguments}
    return {"id": call_id, "type": "function", "function": named}


def _limit_calls(calls: list[Json], capture: Capture) -> list[Json]:
    capture.dropped += max(0, len(calls) - MAX_CALLS)
    return calls[:MAX_CALLS]


def _truncate_arguments(value: Any, call_id: str, capture: Capture) -> str:
    """Return the arguments as bounded text; some servers send the object itself."""
    text = value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()
    bounded = truncate_utf8(text, MAX_ARGUMENTS)
    if len(bounded) < len(text):
        capture.capped.append(f"arguments:{call_id}")
    return bounded


def _sanitize_input(value: Any, call_id: str, capture: Capture) -> Json:
    """Return an input object; one too large or of another type is kept as text for the core to refuse."""
    text = _truncate_arguments(value, call_id, capture)
    whole = isinstance(value, dict) and f"arguments:{call_id}" not in capture.capped
    return value if whole else {UNREADABLE: text}


def text_bytes(value: Any) -> int:
    """Count the bytes of all text in a value, at any depth."""
    found, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found += len(one.encode("utf-8", "backslashreplace"))
        elif isinstance(one, dict | list):
            left.extend(one.values() if isinstance(one, dict) else one)
    return found


def count_unkept_bytes(document: Json, kept: Collection[str]) -> int:
    """Count the bytes of text in a document outside its members in `kept`."""
    return text_bytes([one for name, one in document.items() if name not in kept])


def beside_choice(message: Json) -> int:
    """Count the bytes of text in a message that belong to neither its answer nor its calls.

    The message may be a part of one. Such text is, for example, a thought, under any name.
    """
    content = message.get("content")
    parts = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    thoughts = count_unkept_bytes(message, ("role", "content", "refusal", "tool_calls"))
    return thoughts + sum(count_unkept_bytes(part, ("type", "text")) for part in parts)


def beside_block(block: Json) -> int:
    """Count the bytes of text in a content block that belong to neither the answer nor a call."""
    use = ("type", "id", "name", "input", "text")
    return count_unkept_bytes(block, use if block.get("type") == "tool_use" else ("type", "text"))


def flatten_content(content: Any) -> Any:
    """Return text, or the joined text of a list of parts; any other value is unchanged."""
    if not isinstance(content, list):
        return content
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(part for part in parts if isinstance(part, str))


def _truncate_text(value: Any, capture: Capture) -> str:
    if not isinstance(value, str):
        return ""
    bounded = truncate_utf8(value, MAX_TEXT)
    if len(bounded) < len(value):
        capture.capped.append("text")
    return bounded


def _truncate_identifier(value: Any) -> str:
    return truncate_utf8(value, MAX_ID) if isinstance(value, str) else ""


def _truncate_name(value: Any) -> str:
    return truncate_utf8(value, 4 * MAX_NAME)[:MAX_NAME] if isinstance(value, str) else ""


def _note_openai_usage(usage: Any, capture: Capture) -> None:
    if isinstance(usage, dict):
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        capture.usage = {
            "input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens"),
            "cache_read_tokens": cached,
        }  # fmt: skip


def _note_anthropic_usage(usage: Any, capture: Capture) -> None:
    """Record the usage; Anthropic reports cached tokens apart from input tokens, ours include them."""
    if not isinstance(usage, dict):
        return
    fresh, said = usage.get("input_tokens"), usage.get("output_tokens")
    read = usage.get("cache_read_input_tokens") or 0
    stored = usage.get("cache_creation_input_tokens") or 0
    whole = [
        figure for figure in (fresh, stored, read) if isinstance(figure, int) and not isinstance(figure, bool)
    ]
    sane = len(whole) == 3 and min(whole) >= 0
    capture.usage = {
        "input_tokens": sum(whole) if sane else None, "output_tokens": said, "cache_read_tokens": read,
        "cache_write_tokens": stored,
    }  # fmt: skip

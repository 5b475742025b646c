"""Whole replies of the two protocols said as streams: the same document, bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Event
from typing import Any

from tests.doubles.http_server import Json, Reply

HEADERS = {"content-type": "text/event-stream; charset=utf-8"}
DONE = b"data: [DONE]\n\n"


def stream(*parts: bytes | Event, cut: bool = False) -> Reply:
    """A stream of exactly these bytes. `cut`: its connection ends before its end."""
    return Reply(body=b"", headers=HEADERS, parts=parts, cut=0 if cut else None)


def data(document: Any, name: str = "") -> bytes:
    """One event."""
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(document, ensure_ascii=False)}\n\n".encode()


def as_openai(whole: Reply, *, size: int = 7) -> Reply:
    """A chat completion as its chunks: text and arguments in parts of `size` letters."""
    return stream(*openai_parts(whole, size=size), DONE)


def openai_parts(whole: Reply, *, size: int = 7) -> list[bytes]:
    """Its chunks, the usage last, without what says that they are over."""
    document = json.loads(whole.body)
    head = {name: document[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    found = []
    for choice in document["choices"]:
        ends = {"index": 0, "finish_reason": None}
        deltas = _deltas(choice["message"], size)
        found += [{**head, "choices": [{**ends, "delta": delta}]} for delta in deltas]
        found.append({**head, "choices": [{**ends, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if "usage" in document:
        found.append({**head, "choices": [], "usage": document["usage"]})
    return [data(one) for one in found]


def _deltas(message: Json, size: int) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": part} for part in _parts(message.get("reasoning_content"), size))
    yield from ({"content": part} for part in _parts(message.get("content"), size))
    yield from ({"refusal": part} for part in _parts(message.get("refusal"), size))
    for index, call in enumerate(message.get("tool_calls") or ()):
        named = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{**call, "index": index, "function": named}]}
        for part in _parts(call["function"]["arguments"], size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def as_anthropic(whole: Reply, *, size: int = 7) -> Reply:
    """A message as its events."""
    return stream(*anthropic_parts(whole, size=size), data({"type": "message_stop"}, "message_stop"))


def anthropic_parts(whole: Reply, *, size: int = 7) -> list[bytes]:
    """Its events, without the one that says that they are over."""
    document = json.loads(whole.body)
    usage = document.get("usage")
    begun = {**document, "content": [], "stop_reason": None}
    if isinstance(usage, dict):
        begun["usage"] = {**usage, "output_tokens": 1}
    found: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(document["content"]):
        found += _events(index, block, size)
    told = {} if usage is None else {"usage": {"output_tokens": usage.get("output_tokens")}}
    found.append({"type": "message_delta", "delta": {"stop_reason": document["stop_reason"]}, **told})
    return [data(one, one["type"]) for one in found]


def _events(index: int, block: Json, size: int) -> Iterator[Json]:
    use, thought = block.get("type") == "tool_use", "thinking" in block
    member = "input" if use else "thinking" if thought else "text"
    begun = {**block, member: {} if use else ""} if member in block else block
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    name, kind = ("partial_json", "input_json_delta") if use else (member, f"{member}_delta")
    whole = json.dumps(block.get("input")) if use else block.get(member)
    for part in _parts(whole, size):
        yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: part}}
    yield {"type": "content_block_stop", "index": index}


def _parts(text: str | None, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] if text else []

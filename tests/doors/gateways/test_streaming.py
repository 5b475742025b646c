"""Streamed replies: the same outcome as of whole ones, and their text told while it comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from threading import Event
from typing import Any

import pytest

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.run_events import ModelFailed, ModelReplied
from orchestrator.llm.gateways.catalog import ModelEnvironment, scripted_profile
from orchestrator.llm.gateways.client import ModelGateway
from orchestrator.llm.gateways.live_text import WINDOW
from orchestrator.llm.gateways.providers import transport
from orchestrator.llm.gateways.providers.stream_assembler import OpenAIStream
from orchestrator.llm.gateways.response import MAX_NAME
from orchestrator.outbound.gateways.async_executor import EffectLoop
from tests.doors.gateways.effects import (
    PATIENCE,
    SALT,
    ScriptedPermit,
    Told,
    Watching,
    ask_model,
    call_model,
    offered,
    openai_at,
    prompt,
    read,
)
from tests.doubles import anthropic_server as messages
from tests.doubles import openai_server as chat
from tests.doubles.anthropic_server import AnthropicServer, ToolUse, content
from tests.doubles.http_server import ABSENT, Reply
from tests.doubles.openai_server import Call, OpenAIServer, calls, choices, said, usage
from tests.doubles.streams import (
    DONE,
    anthropic_parts,
    as_anthropic,
    as_openai,
    data,
    openai_parts,
    stream,
)
from tests.proves import proves

PATIENT: dict[str, Any] = {"timeout_ms": 25_000}
TOOLS = prompt(tools=offered("orders.lookup", "clock.now"))


def _openai(loop: EffectLoop, script: Reply, *, streams: bool = True, **changes: Any) -> Told:
    with OpenAIServer(script) as server:
        server.streams = streams
        environment, profile = openai_at(server.url)
        told = ask_model(loop, environment, profile.evolve(streams=streams), **PATIENT, **changes)
        assert server.violations == []
        return told


def _anthropic(loop: EffectLoop, script: Reply, *, streams: bool = True, **changes: Any) -> Told:
    with AnthropicServer(script) as server:
        server.streams = streams
        environment, profile = _anthropic_at(server.url)
        told = ask_model(loop, environment, profile.evolve(streams=streams), **PATIENT, **changes)
        assert server.violations == []
        return told


def _anthropic_at(url: str) -> tuple[ModelEnvironment, ModelProfile]:
    environment = ModelEnvironment(anthropic_base_url=url, anthropic_api_key="k")
    return environment, ModelProfile(name="p", provider="anthropic", model="loopback-1", base_url=url)


SIZES = {"huge": 60_000}
THOUGHT = "Let me think: what is é?"
THOUGHTFUL = {"role": "assistant", "content": "Hello there.", "reasoning_content": THOUGHT}
WHOLE = {
    "answer": said("Hello there, it is noon in Zürich. 東京では夜です。"),
    "nothing": said(""),
    "refusal": chat.refused("I cannot do that."),
    "calls": calls(Call("orders_lookup", {"x": "1 2"}, id="a"), Call("clock_now", {}, id="b"), text="Hm."),
    "same ids": calls(Call("clock_now", id="one"), Call("clock_now", id="one")),
    "broken arguments": calls(Call("clock_now", "{not json")),
    "too many calls": calls(*(Call("clock_now", id=f"i{n}") for n in range(100))),
    "huge": calls(Call("clock_now", '{"a": "' + "x" * 1_500_000 + '"}'), text="é" * 1_000_000),
    "cut": said("Half of it", finish="length"),
    "no choices": choices(),
    "a secret": said("the key is sk-abcdefghijklmnopqrstuvwxyz012345"),
    "no usage": said("Hello.", usage=ABSENT),
    "senseless usage": said("Hello.", usage=usage(-5, "many")),
    "dear": said("Hello.", usage=usage(6_000, 10)),
    "thoughts": choices({"index": 0, "message": THOUGHTFUL, "finish_reason": "stop"}),
    "thoughts without usage": choices(
        {"index": 0, "message": THOUGHTFUL, "finish_reason": "stop"}, usage=ABSENT
    ),
}  # fmt: skip
MESSAGES = {
    "answer": messages.said("Hello there, it is noon in Zürich."),
    "refusal": messages.refused(),
    "uses": messages.uses(ToolUse("orders_lookup", {"x": [1, {"y": "z"}]}), ToolUse("b", id="2"), text="Hm."),
    "a list for an input": messages.uses(ToolUse("clock_now", [1, 2])),
    "huge": messages.uses(ToolUse("clock_now", {"a": "x" * 900_000}), text="é" * 500_000),
    "thoughts": content({"type": "hologram", "data": 1}, {"type": "text", "text": "Hello."}, stop="odd"),
    "thoughts without usage": content(
        {"type": "thinking", "thinking": THOUGHT, "signature": ""}, {"type": "text", "text": "Hello there."},
        stop="end_turn", usage=ABSENT,
    ),
    "cached": messages.said(
        "Hello.", usage={"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 40,
                         "cache_creation_input_tokens": 10},
    ),
    "no usage": messages.said("Hello.", usage=ABSENT),
    "senseless usage": messages.said("Hello.", usage={"input_tokens": -1, "output_tokens": "9"}),
}  # fmt: skip


@proves("R-LOOP-9", part="a streamed reply is the whole one: OpenAI-compatible")
@pytest.mark.parametrize("name", WHOLE)
def test_a_streamed_completion_is_performed_like_a_whole_one(loop: EffectLoop, name: str) -> None:
    whole = _openai(loop, WHOLE[name], streams=False, request=TOOLS)
    streamed = _openai(loop, as_openai(WHOLE[name], size=SIZES.get(name, 7)), request=TOOLS)
    assert streamed == whole


@proves("R-LOOP-9", part="a streamed reply is the whole one: Anthropic")
@pytest.mark.parametrize("name", MESSAGES)
def test_a_streamed_message_is_performed_like_a_whole_one(loop: EffectLoop, name: str) -> None:
    whole = _anthropic(loop, MESSAGES[name], streams=False, request=TOOLS)
    streamed = _anthropic(loop, as_anthropic(MESSAGES[name], size=SIZES.get(name, 7)), request=TOOLS)
    assert streamed == whole


HELLO = openai_parts(said("Hello there."))
GREETING = anthropic_parts(messages.said("Hello there."))
STOP = data({"type": "message_stop"})
FINISH = data({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
ERROR = {"error": {"type": "overloaded_error", "message": "Overloaded"}}


@proves("M9", part="a stream that breaks")
@pytest.mark.parametrize(
    ("ask", "broken"),
    [
        (_openai, stream(*HELLO[:2])),
        (_openai, stream(*HELLO[:2], cut=True)),
        (_openai, stream(*HELLO[:2], data(ERROR), *HELLO[2:], DONE)),
        (_openai, stream(*HELLO[:2], b"data: {nothing\n\n", DONE)),
        (_openai, stream(*HELLO[:2], b"data: [1]\n\n", DONE)),
        (_openai, stream(DONE)),
        (_openai, stream(b"<html>\n\n")),
        (_openai, stream(*[b": " + b"x" * 1_000_000 + b"\n\n"] * 34)),
        (_openai, stream(b"data: ", *[b"x" * 1_000_000] * 5, Event())),
        (_openai, stream(*[b"data: " + b" " * 1_000_000 + b"\n"] * 5, Event())),
        (_openai, stream(*HELLO[:3], DONE)),
        (_openai, stream(*[data({"choices": [{"delta": {"content": "x" * 500_000}}]})] * 10, DONE)),
        (_anthropic, stream(*GREETING[:3])),
        (_anthropic, stream(*GREETING[:3], cut=True)),
        (_anthropic, stream(*GREETING[:3], data({"type": "error", **ERROR}, "error"))),
        (_anthropic, stream(STOP)),
        (_anthropic, stream(*(one for one in GREETING if b"message_delta" not in one), STOP)),
    ],
    ids=[
        "ends", "cut", "error", "junk", "list", "nothing", "html", "endless", "line", "event",
        "no finish", "large", "message ends", "message cut", "message error", "message without content",
        "message without a reason",
    ],
)  # fmt: skip
def test_a_broken_stream_is_a_broken_reply(loop: EffectLoop, ask: Callable[..., Told], broken: Reply) -> None:
    told = ask(loop, broken)
    assert isinstance(told.event, ModelFailed)
    # Where the connection itself broke, the server did not say anything wrong.
    error = "malformed" if broken.cut is None else "cut_off"
    assert (told.event.error, told.event.transient, told.event.usage) == (error, True, {})
    assert told.text(told.event.detail)


@proves("M11", part="a stream that tells its usage too early, or never")
@pytest.mark.parametrize(
    ("ask", "parts", "thought"),
    [
        (_openai, [data({"choices": [], "usage": usage(0, 0)}), *HELLO[:-1], DONE], ""),
        (_openai, [*HELLO[:-1], DONE], ""),
        (_openai, [*HELLO, data({"choices": [{"delta": {"reasoning": THOUGHT}}]}), DONE], THOUGHT),
        (_openai, [*HELLO, data({"choices": [{"index": 1, "delta": {"content": THOUGHT}}]}), DONE], THOUGHT),
        (_openai, [data({"choices": [{"delta": {"content": [{"type": "thinking", "thinking": THOUGHT}]}}]}),
                   *HELLO[:-1], DONE], THOUGHT),
        (_anthropic, [*GREETING[:-1], data({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
                      STOP], ""),
        (_anthropic, [*GREETING, data({"type": "content_block_delta", "index": 9,
                                       "delta": {"type": "thinking_delta", "thinking": THOUGHT}}), STOP],
         THOUGHT),
    ],
    ids=["before", "never", "before a thought", "before another choice", "with a thought among the text",
         "only at first", "before a block's thought"],
)  # fmt: skip
def test_usage_that_is_not_told_at_the_end_is_estimated_as_of_a_whole_reply(
    loop: EffectLoop, ask: Callable[..., Told], parts: list[bytes], thought: str
) -> None:
    request = prompt()
    told = ask(loop, stream(*parts), request=request)
    written = Decimal(len("Hello there.") + len(thought.encode()))
    assert told.event.counted == "estimated"
    assert told.event.usage == {"input_tokens": Decimal(len(request)), "output_tokens": written}
    assert told.text(told.event.answer) == "Hello there."


@proves("M11", part="a stream that takes back what it told of its usage")
def test_what_a_message_costs_at_first_is_not_taken_back_at_its_end(loop: EffectLoop) -> None:
    ends = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    less = {"usage": {"input_tokens": 0, "output_tokens": 40, "cache_read_input_tokens": 0}}
    first = anthropic_parts(messages.said("Hi.", usage={"input_tokens": 90, "cache_read_input_tokens": 7}))
    told = _anthropic(loop, stream(*first[:-1], data({**ends, **less}), STOP))
    assert told.event.counted == "provider"
    assert (told.event.usage["input_tokens"], told.event.usage["output_tokens"]) == (97, 40)


def test_a_whole_reply_is_not_late_for_the_end_of_its_stream(
    loop: EffectLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "REST_SECONDS", 60)
    told = _openai(loop, stream(*HELLO, DONE, Event()))
    assert isinstance(told.event, ModelReplied)


def test_a_name_is_put_together_within_its_bound() -> None:
    found, words = OpenAIStream(lambda _: None), [f"n{number}" for number in range(5_000)]
    for word in words:
        found.feed(data({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": word}}]}}]}))
    found.feed(FINISH)
    called = json.loads(found.body())["choices"][0]["message"]["tool_calls"][0]["function"]
    assert called["name"] == "".join(words)[: 4 * MAX_NAME]


@pytest.mark.parametrize(
    "given", [said("Whole."), chat.failing(500), chat.rate_limited("2"), chat.failing(400)]
)
def test_a_server_may_answer_whole_or_refuse_although_it_was_asked_for_a_stream(
    loop: EffectLoop, given: Reply
) -> None:
    assert _openai(loop, given) == _openai(loop, given, streams=False)


def test_lines_may_be_torn_anywhere_and_end_in_any_way(loop: EffectLoop) -> None:
    whole = b"".join((*HELLO, DONE))
    told = [
        _openai(loop, stream(*torn))
        for torn in (
            [whole[at : at + 1] for at in range(len(whole))],
            [whole.replace(b"\n", b"\r\n")[at : at + 5] for at in range(0, 2 * len(whole), 5)],
            [whole.replace(b"\n", b"\r")],
            [b": a comment\n\ndata:\n\n", whole.rstrip()],
        )
    ]
    assert [one.text(one.event.answer) for one in told] == ["Hello there."] * 4
    assert {one.event.counted for one in told} == {"provider"}


def test_parts_of_calls_are_put_together_however_a_server_marks_them(loop: EffectLoop) -> None:
    def part(**call: Any) -> bytes:
        return data({"choices": [{"delta": {"tool_calls": [call]}}]})

    told = _openai(
        loop,
        stream(
            part(id="a", function={"name": "clock_now", "arguments": '{"x"'}),
            part(function={"name": "clock_now", "arguments": ':"1"}'}),
            part(id="b", function={"name": "orders_lookup", "arguments": {"x": "2"}}),
            FINISH,
            DONE,
        ),
        request=TOOLS,
    )
    asked = [(one.call_id, one.name, told.text(one.arguments)) for one in told.event.requests]
    assert asked == [("a", "clock.now", '{"x":"1"}'), ("b", "orders.lookup", '{"x":"2"}')]


def _watched(
    loop: EffectLoop, server: OpenAIServer | AnthropicServer, watching: Watching, **changes: Any
) -> Any:
    server.streams = True
    at = openai_at if isinstance(server, OpenAIServer) else _anthropic_at
    environment, profile = at(server.url)
    gateway, effect = ModelGateway(lambda: environment), call_model(TOOLS, **(PATIENT | changes))
    return gateway.start(
        loop, effect, TOOLS, profile.evolve(streams=True), SALT, ScriptedPermit(), audience=watching
    )


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_text_is_told_while_it_comes_and_arguments_and_thoughts_never(
    loop: EffectLoop, provider: str
) -> None:
    go, secret = Event(), "PARTS OF A CALL"
    if provider == "openai":
        thinking = data({"choices": [{"delta": {"reasoning_content": secret}}]})
        parts = openai_parts(calls(Call("orders_lookup", {"x": secret}), text="One two three"))
        found = stream(thinking, *parts[:3], go, *parts[3:], DONE)
        server: OpenAIServer | AnthropicServer = OpenAIServer(found)
    else:
        thinking = data({"type": "content_block_delta", "index": 9,
                         "delta": {"type": "thinking_delta", "thinking": secret}})  # fmt: skip
        parts = anthropic_parts(messages.uses(ToolUse("orders_lookup", {"x": secret}), text="One two three"))
        server = AnthropicServer(stream(thinking, *parts[:5], go, *parts[5:], data({"type": "message_stop"})))
    watching = Watching(wanted="One two ")
    with server:
        started = _watched(loop, server, watching)
        assert watching.heard.wait(PATIENCE)
        assert not started.done()
        go.set()
        told = read(started.result(PATIENCE))
    assert told.document(told.event.reply)["text"] == "One two three"
    assert not any(secret in text for _, text in watching.told)


def test_nothing_is_told_to_nobody_and_nothing_after_the_end(loop: EffectLoop) -> None:
    watching = Watching(here=False)
    with OpenAIServer(as_openai(said("One two three four five"))) as server:
        told = read(_watched(loop, server, watching).result(PATIENCE))
    assert isinstance(told.event, ModelReplied)
    assert watching.told == []


def test_a_long_text_is_told_by_its_end_and_no_more_often_than_people_read(loop: EffectLoop) -> None:
    watching, text = Watching(), "words and more words " * 4_000
    with OpenAIServer(as_openai(said(text), size=40)) as server:
        told = read(_watched(loop, server, watching).result(PATIENCE))
    assert told.text(told.event.answer) == text
    assert 0 < len(watching.told) < 60
    assert all(len(piece) <= WINDOW and text[at : at + len(piece)] == piece for at, piece in watching.told)


def test_whoever_comes_while_the_model_thinks_sees_what_it_wrote(loop: EffectLoop) -> None:
    watching, go = Watching(here=False, wanted="Hello "), Event()
    with OpenAIServer(stream(*HELLO[:3], go, *HELLO[3:], DONE)) as server:
        started = _watched(loop, server, watching)
        while not server.seen:
            server.wait(0.02)
        server.wait(0.3)
        watching.here = True
        assert watching.heard.wait(PATIENCE)
        go.set()
        assert isinstance(read(started.result(PATIENCE)).event, ModelReplied)
    assert watching.told[0] == (0, "Hello ")


def test_a_stream_that_hangs_meets_the_deadline_and_tells_no_more(loop: EffectLoop) -> None:
    watching = Watching()
    with OpenAIServer(stream(*HELLO[:3], Event())) as server:
        told = read(_watched(loop, server, watching, timeout_ms=300).result(PATIENCE))
    assert (told.event.error, told.event.transient) == ("timeout", True)
    assert {text for _, text in watching.told} <= {"Hello "}


def test_a_scripted_reply_is_written_before_who_watches_and_at_once_before_nobody(loop: EffectLoop) -> None:
    request = prompt(
        'How much is 3 * 4?\n- [f1] calculator.evaluate {"expression":"3 * 4","result":"12"}\n'
        '- [f2] calculator.evaluate {"expression":"round(12, 2)","result":"12.00"}\n'
        '- [f3] clock.now {"utc":"2026-11-21T12:00:00Z"}'
    )
    gateway, profile = ModelGateway(), scripted_profile("tool_loop")
    told = []
    for watching in (Watching(here=False), Watching()):
        started = gateway.start(
            loop, call_model(request), request, profile, SALT, ScriptedPermit(), audience=watching
        )
        assert started.done() is not watching.here
        told.append(read(started.result(PATIENCE)))
        assert bool(watching.told) is watching.here
        assert all("3 * 4 = 12 [f1]".startswith(text[:15]) for _, text in watching.told)
    assert told[0] == told[1]
    assert isinstance(told[0].event, ModelReplied)

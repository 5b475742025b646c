"""The model gateway against a server of the messages API."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.run_events import ModelReplied
from orchestrator.llm.gateways.catalog import ModelEnvironment
from orchestrator.outbound.gateways.async_executor import EffectLoop
from tests.doors.gateways.effects import Told, ask_model, offered, prompt
from tests.doubles.anthropic_server import (
    ABSENT,
    AnthropicServer,
    Reply,
    ToolUse,
    content,
    failing,
    html,
    rate_limited,
    refused,
    said,
    uses,
)
from tests.doubles.http_server import reply
from tests.proves import proves


def _ask(loop: EffectLoop, server: AnthropicServer, *script: Reply, **changes: Any) -> Told:
    server.play(*script)
    environment = ModelEnvironment(anthropic_base_url=server.url, anthropic_api_key="k")
    profile = ModelProfile(name="p", provider="anthropic", model="loopback-1", base_url=server.url)
    told = ask_model(loop, environment, profile, **changes)
    assert server.violations == []
    return told


@proves("R-LOOP-9", part="anthropic")
def test_an_answer_and_its_usage(loop: EffectLoop, anthropic_server: AnthropicServer) -> None:
    told = _ask(loop, anthropic_server, said("Hello."))
    assert told.text(told.event.answer) == "Hello."
    assert told.event.usage["output_tokens"] == 30
    assert told.event.counted == "provider"


def test_cached_tokens_are_part_of_the_input(loop: EffectLoop, anthropic_server: AnthropicServer) -> None:
    figures = {
        "input_tokens": 100,
        "output_tokens": 5,
        "cache_read_input_tokens": 40,
        "cache_creation_input_tokens": 10,
    }
    told = _ask(loop, anthropic_server, said("Hello.", usage=figures))
    assert told.event.usage == {
        "input_tokens": Decimal(150),
        "output_tokens": Decimal(5),
        "cache_read_tokens": Decimal(40),
        "cache_write_tokens": Decimal(10),
    }


def test_uses_are_requests_under_our_names(loop: EffectLoop, anthropic_server: AnthropicServer) -> None:
    asked = uses(ToolUse("orders_lookup", {"order_id": "A-1"}), ToolUse("b", id="toolu_2"), text="Looking.")
    told = _ask(loop, anthropic_server, asked, request=prompt(tools=offered("orders.lookup")))
    assert [request.name for request in told.event.requests] == ["orders.lookup", "b"]
    assert told.text(told.event.requests[0].arguments) == '{"order_id":"A-1"}'
    assert told.document(told.event.reply)["text"] == "Looking."


def test_a_refusal_is_marked(loop: EffectLoop, anthropic_server: AnthropicServer) -> None:
    assert _ask(loop, anthropic_server, refused()).event.refusal


@proves("M13", part="anthropic")
def test_repeated_ids_are_made_distinct(loop: EffectLoop, anthropic_server: AnthropicServer) -> None:
    told = _ask(loop, anthropic_server, uses(ToolUse("a"), ToolUse("b"), ToolUse("c", id="")))
    ids = [request.call_id for request in told.event.requests]
    assert len(set(ids)) == 3


@proves("M9", part="anthropic")
@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (html(), "malformed"),
        (reply(None), "malformed"),
        (reply({"type": "message"}), "malformed"),
        (said("x" * 99).cut_at(40), "cut_off"),
    ],
)
def test_what_is_no_reply_is_malformed_and_what_breaks_off_is_cut_off(
    loop: EffectLoop, anthropic_server: AnthropicServer, broken: Reply, error: str
) -> None:
    told = _ask(loop, anthropic_server, broken)
    assert (told.event.error, told.event.transient) == (error, True)


@proves("M11", part="anthropic")
@pytest.mark.parametrize(
    "figures",
    [ABSENT, None, {}, {"input_tokens": -1, "output_tokens": 2}, {"input_tokens": 1, "output_tokens": "9"}],
)
def test_senseless_usage_is_estimated(
    loop: EffectLoop, anthropic_server: AnthropicServer, figures: Any
) -> None:
    told = _ask(loop, anthropic_server, said("Hello.", usage=figures))
    assert told.event.counted == "estimated"
    assert min(told.event.usage.values()) >= 0


@pytest.mark.parametrize(
    ("given", "error", "transient"),
    [
        (rate_limited("3"), "rate_limited", True),
        (failing(529, "overloaded_error"), "unavailable", True),
        (failing(401, "authentication_error"), "unauthorized", False),
        (failing(400, "invalid_request_error"), "rejected", False),
    ],
)
def test_failures_are_the_closed_words(
    loop: EffectLoop, anthropic_server: AnthropicServer, given: Reply, error: str, *, transient: bool
) -> None:
    told = _ask(loop, anthropic_server, given)
    assert (told.event.error, told.event.transient) == (error, transient)


def test_a_conversation_with_odd_ids_and_arguments_is_taken(
    loop: EffectLoop, anthropic_server: AnthropicServer
) -> None:
    history: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "text": "",
            "calls": [
                {"id": "functions.a:0", "name": "orders.lookup", "arguments": "[1]"},
                {"id": "c2", "name": "gone.tool", "arguments": "{}"},
            ],
        },
        {"role": "tool", "call": "c2", "name": "gone.tool", "text": "{}"},
        {"role": "user", "text": "go on"},
    ]
    told = _ask(
        loop, anthropic_server, said("ok"), request=prompt(history=history, tools=offered("orders.lookup"))
    )
    assert isinstance(told.event, ModelReplied)
    assert anthropic_server.documents[0]["max_tokens"] == 300


@proves("P9", part="model keys: the other protocol")
def test_a_key_goes_only_to_the_address_it_was_given_for(
    loop: EffectLoop, anthropic_server: AnthropicServer
) -> None:
    environment = ModelEnvironment(
        anthropic_api_key="k", openai_api_key="k", openai_base_url=anthropic_server.url
    )
    profile = ModelProfile(name="p", provider="anthropic", model="loopback-1", base_url=anthropic_server.url)
    told = ask_model(loop, environment, profile)
    assert (told.event.error, told.event.transient) == ("no_key", False)
    assert anthropic_server.seen == []


def test_blocks_of_an_unknown_kind_are_left_out(loop: EffectLoop, anthropic_server: AnthropicServer) -> None:
    odd = content({"type": "hologram", "data": 1}, {"type": "text", "text": "Hello."}, stop="odd")
    told = _ask(loop, anthropic_server, odd)
    assert told.text(told.event.answer) == "Hello."
    assert told.event.finish == "odd"

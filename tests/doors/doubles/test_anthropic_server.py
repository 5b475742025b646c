"""The messages-API double answers as scripted and refuses what a strict server refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.tools import ToolDefinition

from tests.doubles import anthropic_server as anthropic
from tests.doubles.anthropic_server import ABSENT, AnthropicServer, ToolUse

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
TOLD = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "12:00"}
REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": [ToolUse("clock_now").document()]},
        {"role": "user", "content": [TOLD]},
    ],
    "tools": [{"name": "clock_now", "input_schema": {"type": "object"}}],
}


def ask(server: AnthropicServer, document: Any = REQUEST, **headers: str) -> httpx2.Response:
    return httpx2.post(server.url + "/v1/messages", json=document, headers=HEADERS | headers, trust_env=False)


def test_text_and_uses_come_in_the_order_of_the_script(anthropic_server: AnthropicServer) -> None:
    uses = (ToolUse("a", {"x": 1}), ToolUse("b", id="toolu_2"))
    anthropic_server.play(anthropic.uses(*uses, text="Let me see."), anthropic.said("Noon."))
    first, second = ask(anthropic_server).json(), ask(anthropic_server).json()
    assert [block["type"] for block in first["content"]] == ["text", "tool_use", "tool_use"]
    assert (first["stop_reason"], second["stop_reason"]) == ("tool_use", "end_turn")


def test_a_refusal_has_no_content(anthropic_server: AnthropicServer) -> None:
    anthropic_server.play(anthropic.refused())
    document = ask(anthropic_server).json()
    assert (document["content"], document["stop_reason"]) == ([], "refusal")


def test_usage_is_as_wrong_as_wanted(anthropic_server: AnthropicServer) -> None:
    wrong = {"input_tokens": -1, "output_tokens": "few"}
    anthropic_server.play(anthropic.said("x", usage=wrong), anthropic.said("x", usage=ABSENT))
    assert [ask(anthropic_server).json().get("usage") for _ in range(2)] == [wrong, None]


@pytest.mark.parametrize(
    ("reply", "status", "kind"),
    [
        (anthropic.rate_limited("7"), 429, "rate_limit_error"),
        (anthropic.failing(529, "overloaded_error", "Overloaded"), 529, "overloaded_error"),
        (anthropic.failing(), 500, "api_error"),
    ],
)
def test_errors_have_the_shape_of_the_api(
    anthropic_server: AnthropicServer, reply: anthropic.Reply, status: int, kind: str
) -> None:
    anthropic_server.play(reply)
    answer = ask(anthropic_server)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)


def test_a_key_is_wanted(anthropic_server: AnthropicServer) -> None:
    assert ask(anthropic_server, **{"x-api-key": ""}).status_code == 401


@pytest.mark.parametrize(
    "header", [{"x-api-key": "right"}, {"x-api-key": "", "authorization": "Bearer right"}]
)
def test_the_key_comes_in_either_header(header: dict[str, str]) -> None:
    with AnthropicServer(anthropic.said("Noon."), key="right") as server:
        assert ask(server).status_code == 401
        assert ask(server, **header).status_code == 200


def without_result(request: dict[str, Any]) -> None:
    request["messages"][2]["content"] = "Well?"


def two_results(request: dict[str, Any]) -> None:
    request["messages"][2]["content"] *= 2


def text_before_the_result(request: dict[str, Any]) -> None:
    request["messages"][2]["content"].insert(0, {"type": "text", "text": "Here:"})


def an_id_with_a_dot(request: dict[str, Any]) -> None:
    request["messages"][1]["content"][0]["id"] = "call.1"
    request["messages"][2]["content"][0]["tool_use_id"] = "call.1"


def input_as_text(request: dict[str, Any]) -> None:
    request["messages"][1]["content"][0]["input"] = "{}"


def no_room_for_an_answer(request: dict[str, Any]) -> None:
    del request["max_tokens"]


def the_assistant_last(request: dict[str, Any]) -> None:
    request["messages"] = [*request["messages"], {"role": "assistant", "content": "It is"}]


def an_empty_block(request: dict[str, Any]) -> None:
    request["messages"][0]["content"] = [{"type": "text", "text": ""}]


def a_dotted_tool_name(request: dict[str, Any]) -> None:
    request["tools"][0]["name"] = "clock.now"


@pytest.mark.parametrize(
    "breaker",
    [
        without_result,
        two_results,
        text_before_the_result,
        an_id_with_a_dot,
        input_as_text,
        no_room_for_an_answer,
        the_assistant_last,
        an_empty_block,
        a_dotted_tool_name,
    ],
)
def test_a_request_that_breaks_the_api_is_refused(
    anthropic_server: AnthropicServer, breaker: Callable[[dict[str, Any]], None]
) -> None:
    anthropic_server.play(anthropic.said("unheard"))
    broken = copy.deepcopy(REQUEST)
    breaker(broken)
    assert ask(anthropic_server, broken).status_code == 400
    assert anthropic_server.violations
    assert anthropic_server.left == 1


@pytest.mark.parametrize("document", [[], {}, REQUEST | {"messages": [1]}, REQUEST | {"tools": [1]}])
def test_a_document_of_another_shape_is_refused(anthropic_server: AnthropicServer, document: Any) -> None:
    assert ask(anthropic_server, document).status_code == 400


async def test_a_client_that_is_not_ours_gets_through(anthropic_server: AnthropicServer) -> None:
    anthropic_server.play(anthropic.uses(ToolUse("clock_now", {"zone": "UTC"})), anthropic.said("Noon."))
    offered = ToolDefinition(
        name="clock_now", description="The time.", parameters_json_schema={"type": "object"}
    )
    parameters = ModelRequestParameters(function_tools=[offered])
    async with AsyncAnthropic(base_url=anthropic_server.url, api_key="k", max_retries=0) as client:
        model = AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))
        asked = ModelRequest.user_text_prompt("What time is it?", instructions="Be brief.")
        called = await model_request(model, [asked], model_request_parameters=parameters)
        [call] = [part for part in called.parts if isinstance(part, ToolCallPart)]
        told = ModelRequest(
            [ToolReturnPart(call.tool_name, "12:00", call.tool_call_id)], instructions="Be brief."
        )
        answered = await model_request(model, [asked, called, told], model_request_parameters=parameters)
    assert [part.content for part in answered.parts if isinstance(part, TextPart)] == ["Noon."]
    assert anthropic_server.violations == []

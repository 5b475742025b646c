"""The chat-completions double answers as scripted and refuses what a strict server refuses."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from tests.doubles import openai_server as openai
from tests.doubles.openai_server import ABSENT, Call, OpenAIServer

TOOL = {
    "type": "function",
    "function": {
        "name": "clock_now",
        "description": "The time.",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
    },
}
ASKED: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What time is it?"},
]
CALLED = {"role": "assistant", "content": None, "tool_calls": [Call("clock_now").document()]}
TOLD = {"role": "tool", "tool_call_id": "call_1", "content": "12:00"}
REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [*ASKED, CALLED, TOLD],
    "tools": [TOOL],
    "max_tokens": 100,
}


def ask(server: OpenAIServer, document: Any = REQUEST, timeout: float = 10) -> httpx2.Response:
    return httpx2.post(server.url + "/chat/completions", json=document, timeout=timeout, trust_env=False)


def message(answer: httpx2.Response) -> Any:
    return answer.json()["choices"][0]["message"]


def test_replies_come_in_the_order_of_the_script(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.said("one"), openai.said("two"))
    assert [message(ask(openai_server))["content"] for _ in range(2)] == ["one", "two"]
    assert openai_server.documents == [REQUEST, REQUEST]
    assert (openai_server.left, openai_server.unscripted) == (0, [])


def test_a_script_that_is_over_says_so(openai_server: OpenAIServer) -> None:
    assert ask(openai_server).status_code == 500
    assert len(openai_server.unscripted) == 1


def test_several_calls_stand_in_one_reply_with_ids_as_scripted(openai_server: OpenAIServer) -> None:
    asked = (Call("a", {"x": 1}), Call("b", "{cut", id="call_1"), Call("c", id=None))
    openai_server.play(openai.calls(*asked, text="Let me see."))
    found = message(ask(openai_server))["tool_calls"]
    assert [call.get("id") for call in found] == ["call_1", "call_1", None]
    assert [call["function"]["arguments"] for call in found] == ['{"x": 1}', "{cut", "{}"]


def test_a_refusal_is_no_text(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.refused("No."))
    assert message(ask(openai_server)) == {"role": "assistant", "content": None, "refusal": "No."}


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (openai.said("x", usage=ABSENT), None),
        (openai.said("x", usage=None), None),
        (openai.said("x", usage=openai.usage(-5, -7)), -12),
        (openai.said("x", usage=openai.usage(10**18, 1)), 10**18 + 1),
        (openai.said("x", usage=openai.usage("many", "few")), "many"),
    ],
)
def test_usage_is_as_wrong_as_wanted(openai_server: OpenAIServer, made: openai.Reply, found: Any) -> None:
    openai_server.play(made)
    usage = ask(openai_server).json().get("usage")
    assert (usage["total_tokens"] if usage else None) == found


def test_there_may_be_no_choices_or_null_ones(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.choices(), openai.choices(None), openai.said("x").altered(choices=ABSENT))
    assert [ask(openai_server).json().get("choices") for _ in range(3)] == [[], [None], None]


def test_a_web_page_can_come_instead(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.html())
    assert ask(openai_server).headers["content-type"] == "text/html"


def test_a_body_can_end_early(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.said("a long answer").cut_at(40))
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(openai_server)


def test_a_limit_says_when_to_come_back(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.rate_limited("999999"))
    answer = ask(openai_server)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "999999")


def test_it_can_be_slow_and_still_closes_at_once() -> None:
    with OpenAIServer(openai.said("late").after(60)) as server:
        with pytest.raises(httpx2.ReadTimeout):
            ask(server, timeout=0.1)
        closing = time.monotonic()
    assert time.monotonic() - closing < 30


def test_two_megabytes_arrive_whole(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.said("ü" * 1_000_000))
    assert len(message(ask(openai_server))["content"].encode()) == 2_000_000


def test_another_key_is_refused() -> None:
    with OpenAIServer(key="right") as server:
        assert ask(server).status_code == 401


def test_another_path_does_not_exist(openai_server: OpenAIServer) -> None:
    assert httpx2.get(openai_server.url + "/models", trust_env=False).status_code == 404


def without_answer(request: dict[str, Any]) -> None:
    request["messages"].pop()


def answered_twice(request: dict[str, Any]) -> None:
    request["messages"].append(TOLD)


def answered_under_another_name(request: dict[str, Any]) -> None:
    request["messages"][-1]["tool_call_id"] = "call_2"


def spoken_before_the_answer(request: dict[str, Any]) -> None:
    request["messages"].insert(3, {"role": "user", "content": "Well?"})


def same_id_twice(request: dict[str, Any]) -> None:
    request["messages"][2]["tool_calls"] *= 2


def arguments_as_an_object(request: dict[str, Any]) -> None:
    request["messages"][2]["tool_calls"][0]["function"]["arguments"] = {}


def instructions_in_the_middle(request: dict[str, Any]) -> None:
    request["messages"].append({"role": "system", "content": "Be long."})


def an_empty_question(request: dict[str, Any]) -> None:
    request["messages"][1]["content"] = ""


def an_unknown_role(request: dict[str, Any]) -> None:
    request["messages"][1]["role"] = "operator"


def nothing_asked(request: dict[str, Any]) -> None:
    request["messages"] = [*ASKED, {"role": "assistant", "content": "Noon."}]


def a_dotted_tool_name(request: dict[str, Any]) -> None:
    request["tools"][0]["function"]["name"] = "clock.now"


def a_tool_twice(request: dict[str, Any]) -> None:
    request["tools"] *= 2


def a_schema_that_is_none(request: dict[str, Any]) -> None:
    request["tools"][0]["function"]["parameters"] = {
        "type": "object",
        "properties": {"x": {"type": "nothing"}},
    }


def strict_and_open(request: dict[str, Any]) -> None:
    request["tools"][0]["function"]["strict"] = True


def an_unknown_parameter(request: dict[str, Any]) -> None:
    request["idempotency_key"] = "k"


def no_tokens(request: dict[str, Any]) -> None:
    request["max_tokens"] = 0


def a_choice_not_offered(request: dict[str, Any]) -> None:
    request["tool_choice"] = {"type": "function", "function": {"name": "other"}}


BREAKERS = [
    (without_answer, "calls without an answer"),
    (answered_twice, "is no open call"),
    (answered_under_another_name, "is no open call"),
    (spoken_before_the_answer, "user speaks before calls"),
    (same_id_twice, "is given twice"),
    (arguments_as_an_object, "arguments: a string"),
    (instructions_in_the_middle, "instructions stand before"),
    (an_empty_question, "content: text is required"),
    (an_unknown_role, "'operator' is none of"),
    (nothing_asked, "nothing is asked"),
    (a_dotted_tool_name, "function.name"),
    (a_tool_twice, "two have the same name"),
    (a_schema_that_is_none, "a JSON schema of an object"),
    (strict_and_open, "strict needs closed objects"),
    (an_unknown_parameter, "unknown parameters: ['idempotency_key']"),
    (no_tokens, "max_tokens: a positive integer"),
    (a_choice_not_offered, "tool_choice"),
]


@pytest.mark.parametrize(("breaker", "complaint"), BREAKERS)
def test_a_request_that_breaks_the_protocol_is_refused(
    openai_server: OpenAIServer, breaker: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    openai_server.play(openai.said("unheard"))
    broken = copy.deepcopy(REQUEST)
    breaker(broken)
    answer = ask(openai_server, broken)
    assert answer.status_code == 400
    assert complaint in answer.json()["error"]["message"]
    assert complaint in openai_server.violations[0]
    assert openai_server.left == 1


@pytest.mark.parametrize(
    "document", [[], None, {}, {"model": "m", "messages": [1]}, {"model": "m", "messages": "hi"}]
)
def test_a_document_of_another_shape_is_refused(openai_server: OpenAIServer, document: Any) -> None:
    assert ask(openai_server, document).status_code == 400


def test_malformed_arguments_in_the_history_are_refused_where_asked_for() -> None:
    called = CALLED | {"tool_calls": [Call("clock_now", "{cut").document()]}
    document = REQUEST | {"messages": [*ASKED, called, TOLD]}
    with OpenAIServer(openai.said("fine")) as server:
        assert ask(server, document).status_code == 200
    with OpenAIServer(strict_arguments=True) as server:
        assert ask(server, document).status_code == 400


async def test_a_client_that_is_not_ours_gets_through(openai_server: OpenAIServer) -> None:
    openai_server.play(openai.calls(Call("clock_now", {"zone": "UTC"})), openai.said("Noon."))
    offered = ToolDefinition(
        name="clock_now", description="The time.", parameters_json_schema={"type": "object"}
    )
    parameters = ModelRequestParameters(function_tools=[offered])
    async with AsyncOpenAI(base_url=openai_server.url, api_key="k", max_retries=0) as client:
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        asked = ModelRequest.user_text_prompt("What time is it?", instructions="Be brief.")
        called = await model_request(model, [asked], model_request_parameters=parameters)
        [call] = [part for part in called.parts if isinstance(part, ToolCallPart)]
        told = ModelRequest(
            [ToolReturnPart(call.tool_name, "12:00", call.tool_call_id)], instructions="Be brief."
        )
        answered = await model_request(model, [asked, called, told], model_request_parameters=parameters)
    assert [part.content for part in answered.parts if isinstance(part, TextPart)] == ["Noon."]
    assert openai_server.violations == []

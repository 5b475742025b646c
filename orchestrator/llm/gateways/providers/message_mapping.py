"""Between the neutral request and the library's messages. Pure; the library does the rest."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import orjson
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from orchestrator.llm.gateways.providers.response_sanitizing import UNREADABLE, Capture
from orchestrator.llm.gateways.request import (
    UNSAFE,
    AskedCall,
    AssistantTurn,
    NeutralRequest,
    ToolTurn,
    UserTurn,
    WireNames,
)
from orchestrator.llm.gateways.response import Reply, WrittenCall

SHOWN_UNREADABLE = 2_000
UNANSWERED = '{"status":"not_run","detail":"no result was recorded"}'


def messages_of(request: NeutralRequest, names: WireNames, *, strict_ids: bool) -> list[ModelMessage]:
    """The conversation. Every call gets a result before anybody else speaks; empty turns are left out."""
    ids = _Ids(strict=strict_ids)
    history: list[ModelMessage] = []
    waiting: dict[str, str] = {}
    for assistant, turns in groupby(request.messages, key=lambda turn: isinstance(turn, AssistantTurn)):
        if assistant:
            response, waiting = _build_response(
                [t for t in turns if isinstance(t, AssistantTurn)], names, ids
            )
            if response is not None:
                history.append(response)
        else:
            parts = _build_answer_parts(
                [t for t in turns if not isinstance(t, AssistantTurn)], waiting, names, ids
            )
            history.append(ModelRequest(parts=parts, instructions=build_instructions(request)))
            waiting = {}
    return history


def build_instructions(request: NeutralRequest) -> str:
    """The system text, with the form of the answer where one is asked for."""
    if request.output_schema is None:
        return request.system
    schema = orjson.dumps(request.output_schema, option=orjson.OPT_SORT_KEYS).decode()
    return (
        f"{request.system}\n\nThe final answer is one JSON value of this schema, and nothing else:\n{schema}"
    )


def parameters_of(request: NeutralRequest, names: WireNames) -> ModelRequestParameters:
    """The tools on offer. Not strict: our schemas stay as they are pinned, and the core checks arguments
    itself.
    """
    tools = [
        ToolDefinition(
            name=names.out(tool.name), description=tool.description, parameters_json_schema=tool.input_schema,
            strict=False,
        )
        for tool in request.tools
    ]  # fmt: skip
    return ModelRequestParameters(function_tools=tools)


def reply_of(response: ModelResponse, capture: Capture, names: WireNames) -> Reply:
    """The library's response with what the wire showed beside it."""
    details = response.provider_details or {}
    refusal = details.get("refusal")
    refused = refusal is not None or response.finish_reason == "content_filter"
    calls = tuple(
        WrittenCall(
            id=part.tool_call_id, name=names.back(part.tool_name), arguments=_decode_call_arguments(part.args)
        )
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    return Reply(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)), calls=calls,
        refusal=str(refusal or "") if refused and not calls else None, finish=capture.finish,
        usage=capture.usage,
        model=response.model_name or "", dropped=capture.dropped, unkept=capture.unkept,
        capped=tuple(dict.fromkeys(capture.capped)),
    )  # fmt: skip


class _Ids:
    """Call ids as the provider takes them: one of the two has its own alphabet."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict

    def __call__(self, call_id: str) -> str:
        return UNSAFE.sub("_", call_id) if self._strict else call_id


def _build_response(
    turns: list[AssistantTurn], names: WireNames, ids: _Ids
) -> tuple[ModelResponse | None, dict[str, str]]:
    parts: list[ModelResponsePart] = []
    waiting: dict[str, str] = {}
    for turn in turns:
        if turn.text.strip():
            parts.append(TextPart(turn.text))
        for call in turn.calls:
            parts.append(ToolCallPart(names.out(call.name), _encode_call_arguments(call), ids(call.id)))
            waiting[call.id] = names.out(call.name)
    return (ModelResponse(parts=parts) if parts else None), waiting


def _build_answer_parts(
    turns: list[UserTurn | ToolTurn], waiting: dict[str, str], names: WireNames, ids: _Ids
) -> list[ModelRequestPart]:
    """Results first, in the order in which they came, then what was missing, then what the user says."""
    results = [turn for turn in turns if isinstance(turn, ToolTurn) and turn.call in waiting]
    answered = {turn.call for turn in results}
    parts: list[ModelRequestPart] = [ToolReturnPart(waiting[t.call], t.text, ids(t.call)) for t in results]
    parts.extend(
        ToolReturnPart(name, UNANSWERED, ids(call)) for call, name in waiting.items() if call not in answered
    )
    parts.extend(UserPromptPart(turn.text) for turn in turns if isinstance(turn, UserTurn) and turn.text)
    return parts


def _encode_call_arguments(call: AskedCall) -> str:
    """Arguments as a server takes them back: what was no JSON object is quoted inside one."""
    try:
        readable = isinstance(orjson.loads(call.arguments), dict)
    except orjson.JSONDecodeError:
        readable = False
    return (
        call.arguments if readable else orjson.dumps({UNREADABLE: call.arguments[:SHOWN_UNREADABLE]}).decode()
    )


def _decode_call_arguments(arguments: str | Mapping[str, Any] | None) -> str:
    """The argument text; where the protocol carries objects, the object's."""
    if isinstance(arguments, str) or arguments is None:
        return arguments or ""
    if tuple(arguments) == (UNREADABLE,) and isinstance(arguments[UNREADABLE], str):
        return str(arguments[UNREADABLE])
    return orjson.dumps(dict(arguments)).decode()

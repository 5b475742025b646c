"""Replies that no honest model gives, as the core takes them: a typed word, a bound, and nothing done."""

from typing import Any

import orjson
import pytest

from orchestrator.core.common.argument_parsing import (
    MAX_BYTES,
    MAX_DEPTH,
    MalformedArguments,
    parse_arguments,
)
from orchestrator.core.common.backoff import CAP_MS, JITTER_MS, delay_ms
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import AskApproval, CallModel, CallTool
from orchestrator.core.domain.run_events import ModelFailed, TimerFired
from tests.core.orchestrator.loops import TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.core.orchestrator.test_ruling import approve, packet
from tests.proves import proves

LOOKUP = ("orders.lookup", {"id": "A-1"})
REFUND_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "amount": {"type": "string"}, "note": {"default": "none"}},
    "required": ["id", "amount"],
    "additionalProperties": False,
}
REFUNDS = TOOLS | {"payments.refund": TOOLS["payments.refund"].evolve(input_schema=REFUND_SCHEMA)}
BROKEN = {
    "truncated": '{"id": "A-',
    "no object": "null",
    "a list": '["A-1"]',
    "two documents": '{"id": "A-1"}{"id": "A-2"}',
    "a hundred deep": '{"id": ' * 100 + "1" + "}" * 100,
    "a hundred thousand deep": "[" * 30_000 + "]" * 30_000,
    "deep in a string": orjson.dumps('{"id": ' * 40 + "1" + "}" * 40).decode(),
    "too large": '{"id": "' + "x" * MAX_BYTES + '"}',
    "not a number": '{"id": NaN}',
    "half a character": '{"id": "\\ud800"}',
}
NO_TOOLS = (
    "x" * 5_000, "", "../../etc/passwd", "payments.refund; rm -rf", "ORDERS.LOOKUP", "orders.lookup\u202e",
    "orders.lookup\x00", " orders.lookup",
)  # fmt: skip


def tool_calls(run: Simulation) -> list[CallTool]:
    """Every call that the run has asked of a tool."""
    return [effect for effect in run.asked if isinstance(effect, CallTool)]


def told(run: Simulation) -> list[dict[str, Any]]:
    """What the model is told of its calls, in its next prompt."""
    effect = next(effect for effect in run.open.values() if isinstance(effect, CallModel))
    messages = orjson.loads(run.contents[effect.request])["messages"]
    return [orjson.loads(message["text"]) for message in messages if message["role"] == "tool"]


@proves("M6", part="a typed error to the model, and bounded retries")
@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
def test_arguments_that_are_none_are_told_typed_and_end_the_run_in_the_end(raw: str) -> None:
    run = loop()
    run.reply(("orders.lookup", raw))
    (word,) = told(run)
    assert word["status"] == "malformed"
    assert 0 < len(word["detail"]) < 1_000
    for _ in range(2):
        run.reply(("orders.lookup", raw))
    assert run.state.outcome is TerminalCode.VALIDATION_FAIL
    assert run.state.reason == "malformed:orders.lookup"
    assert tool_calls(run) == []


@proves("M6", part="depth and size")
@proves("M8", part="arguments, in the core too")
def test_the_bounds_are_exact() -> None:
    deep = '{"a": ' * (MAX_DEPTH - 1) + "1" + "}" * (MAX_DEPTH - 1)
    assert not isinstance(parse_arguments(deep.encode()), MalformedArguments)
    assert isinstance(parse_arguments(f'{{"a": {deep}}}'.encode()), MalformedArguments)
    large = orjson.dumps({"a": "x" * (MAX_BYTES - 8)})
    assert len(large) == MAX_BYTES
    assert not isinstance(parse_arguments(large), MalformedArguments)
    assert isinstance(parse_arguments(large + b" "), MalformedArguments)


@proves("M7", part="refused, and traced cut")
@pytest.mark.parametrize("name", NO_TOOLS)
def test_a_name_that_is_no_tool_s_calls_none(name: str) -> None:
    run = loop()
    run.reply((name[:200], {"id": "A-1"}))
    assert tool_calls(run) == []
    (word,) = told(run)
    assert word["status"] == "unregistered"
    traced = [body.model_dump_json() for body in run.said("call_checked") + run.said("call_not_run")]
    assert traced
    assert all(len(body) < 1_000 for body in traced)


@proves("M5", part="calls that could run")
def test_forty_calls_that_could_run_are_capped_and_none_of_the_rest_is_half_run() -> None:
    run = loop(tool_calls=100, external_calls=100, steps=100)
    run.reply(*(("orders.lookup", {"id": f"A-{number}"}) for number in range(40)))
    while any(isinstance(effect, CallTool) for effect in run.open.values()):
        run.answer({"total": "20.00"})
    words = [word["status"] for word in told(run)]
    assert len(words) == 40
    assert len(tool_calls(run)) == words.count("ok") == 40 - words.count("not_run")
    assert 0 < words.count("ok") <= 16


@proves("M9", part="bounded retries, then a reason")
@pytest.mark.parametrize("error", ["malformed", "server_error", "timeout", "rate_limited"])
def test_a_model_that_never_answers_ends_the_run_with_the_reason(error: str) -> None:
    run = loop(wall_clock_seconds=600)
    for _ in range(20):
        if run.state.outcome is not None:
            break
        if run.state.timer is not None:
            run.feed(TimerFired(at=run.now), after_ms=CAP_MS)
        else:
            (effect,) = run.open
            run.feed(ModelFailed(at=run.now, effect=effect, error=error, transient=True))
            # A run that waits has nothing under way: it holds no worker.
            assert run.open == {}
    assert run.state.outcome is TerminalCode.UNAVAILABLE_DEP
    assert error in run.state.reason
    assert len([effect for effect in run.asked if isinstance(effect, CallModel)]) == 3


@proves("M10", part="capped backoff with jitter")
def test_the_longest_wait_is_capped_whatever_is_wished_and_runs_do_not_wait_alike() -> None:
    assert delay_ms(1, "a", 999_999_000) == CAP_MS
    assert delay_ms(10**9, "a") == CAP_MS
    waits = {delay_ms(1, f"run-{number}") for number in range(50)}
    assert len(waits) > 25
    assert max(waits) - min(waits) <= JITTER_MS


@proves("M13", part="each call at most once")
def test_two_calls_under_one_id_are_each_made_once() -> None:
    run = loop()
    (effect,) = (one for one in run.open.values() if isinstance(one, CallModel))
    replied = run.model_reply(effect, LOOKUP, ("orders.lookup", {"id": "A-2"}))
    twins = tuple(request.evolve(call_id="one") for request in replied.requests)
    run.feed(replied.evolve(requests=twins))
    while any(isinstance(one, CallTool) for one in run.open.values()):
        run.answer({"total": "20.00"})
    made = [call.argument_digest for call in tool_calls(run)]
    assert len(made) == len(set(made)) == 2


@proves("G1", part="before anybody is asked")
@pytest.mark.parametrize(
    "arguments",
    [
        {"id": "A-1", "amount": "20.00", "to": "somebody else"},
        {"id": "A-1", "amount": 20},
        {"amount": "20.00"},
        {"id": ["A-1"], "amount": "20.00"},
    ],
)
def test_arguments_of_another_shape_reach_no_person_and_no_tool(arguments: dict[str, Any]) -> None:
    run = loop(tools=REFUNDS)
    run.reply(("payments.refund", arguments))
    assert [word["status"] for word in told(run)] == ["malformed"]
    assert not [effect for effect in run.asked if isinstance(effect, AskApproval | CallTool)]


@proves("G2", part="shown, hashed, approved and sent; no default is filled in")
@pytest.mark.parametrize(
    "spelt",
    [
        '{"amount":"20.00","id":"A-1"}',
        '{ "id" : "A-1",\n "amount" : "20.00" }',
        '{"id":"\\u0041-1","amount":"20.00"}',
        orjson.dumps('{"id": "A-1", "amount": "20.00"}').decode(),
    ],
)
def test_what_a_person_sees_is_the_bytes_that_are_sent(spelt: str) -> None:
    sent = b'{"amount":"20.00","id":"A-1"}'
    run = loop(tools=REFUNDS)
    run.reply(LOOKUP)
    run.answer({"id": "A-1", "total": "20.00"})
    run.reply(("payments.refund", spelt))
    shown = packet(run)
    assert shown["arguments"].encode() == sent
    approve(run)
    (call,) = (call for call in tool_calls(run) if call.tool == "payments.refund")
    assert run.contents[call.arguments] == sent
    assert shown["arguments_digest"] == call.argument_digest

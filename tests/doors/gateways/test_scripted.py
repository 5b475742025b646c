"""The scripted provider: lines are chosen by what stands in the prompt, and by nothing else."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.core.common.goal import Goal
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.run_state import Fact, RunState
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.core.llm.prompt_builder import _build_situation_message
from orchestrator.llm.gateways.catalog import scripted_profile
from orchestrator.llm.gateways.client import ModelGateway
from orchestrator.llm.gateways.providers.scripted_provider import (
    Scenario,
    ScenarioInvalid,
    load_scenario,
    play_scenario,
    scenario_names,
)
from orchestrator.outbound.gateways.async_executor import EffectLoop
from tests.doors.gateways.effects import NOON, SALT, ScriptedPermit, Told, call_model, prompt, read
from tests.proves import proves

SCENARIO = r"""
lines:
  - when: {contains: ['orders are open', '/order (A-\d+)/'], absent: ['FORBIDDEN'], role: executor}
    take: {order: 'order (A-\d+)'}
    reply:
      text: Looking at {{order}}.
      calls: [{name: orders.lookup, arguments: {order_id: '{{order}}', nested: ['{{ order }}', 1]}}]
  - when: {contains: ['order A-1', 'orders are open']}
    reply: {text: Done.}
  - when: {contains: ['decline']}
    reply: {refuse: No.}
  - when: {contains: ['fault demonstration']}
    fail: {error: server_error, times: 1}
  - when: {contains: ['fault demonstration']}
    reply: {text: Better now., usage: {input_tokens: 3, output_tokens: 2}}
  - when: {contains: ['say nothing'], node: act}
    reply: {}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one scenario, `mine`."""
    (tmp_path / "mine.yaml").write_text(SCENARIO)
    return tmp_path


def _play(folder: Path, request: bytes, **changes: Any) -> Told:
    return read(
        play_scenario(call_model(request, **changes), request, scripted_profile("mine"), SALT, folder)
    )


@proves("R-LOOP-10", part="arguments come from the prompt")
def test_a_line_takes_its_arguments_from_the_prompt(folder: Path) -> None:
    told = _play(folder, prompt("orders are open: order A-1001, then order A-1002"))
    (request,) = told.event.requests
    assert request.name == "orders.lookup"
    assert told.document(request.arguments) == {"order_id": "A-1002", "nested": ["A-1002", 1]}
    assert told.document(told.event.reply)["text"] == "Looking at A-1002."


@pytest.mark.parametrize(
    ("text", "answer"),
    [("hello: a=1 b=1, a=2 b=2", "2 and 2"), ("hello: a=1 b=2", None), ("hello: a=3 b=3, a=4", "3 and 3")],
)
def test_a_line_takes_several_things_that_belong_together(
    tmp_path: Path, text: str, answer: str | None
) -> None:
    taken = "['a=(?P<a>.) b=(?P<b>(?P=a))']"
    line = f"{{when: {{contains: [hello]}}, take_all: {taken}, reply: {{text: '{{{{a}}}} and {{{{b}}}}'}}}}"
    (tmp_path / "mine.yaml").write_text(f"lines: [{line}]")
    told = _play(tmp_path, prompt(text))
    said = told.event.error if answer is None else told.text(told.event.answer)
    assert said == (answer or "script_mismatch")


@proves("R-LOOP-10", part="mismatch")
@pytest.mark.parametrize("text", ["nothing here", "orders are open", "orders are open: order A-2 FORBIDDEN"])
def test_a_prompt_without_what_a_line_needs_fails_typed(folder: Path, text: str) -> None:
    told = _play(folder, prompt(text))
    assert (told.event.error, told.event.transient) == ("script_mismatch", False)


def test_a_line_is_used_up_by_its_calls_in_the_conversation(folder: Path) -> None:
    text = "orders are open: order A-1"
    first = _play(folder, prompt(text))
    turn = first.document(first.event.reply)
    history = [
        {"role": "assistant", "text": turn["text"], "calls": turn["calls"]},
        {"role": "tool", "call": turn["calls"][0]["id"], "name": "orders.lookup", "text": "{}"},
    ]
    assert _play(folder, prompt(text)).event == first.event
    second = _play(folder, prompt(text, history=history))
    assert second.text(second.event.answer) == "Done."


def test_the_models_own_words_are_nothing_to_go_by(folder: Path) -> None:
    history = [{"role": "assistant", "text": "decline", "calls": []}]
    assert _play(folder, prompt("nothing", history=history)).event.error == "script_mismatch"


def test_a_line_may_refuse_fail_or_say_nothing(folder: Path) -> None:
    assert _play(folder, prompt("decline")).event.refusal
    failing = _play(folder, prompt("fault demonstration"))
    assert (failing.event.error, failing.event.transient) == ("server_error", True)
    better = _play(folder, prompt("fault demonstration"), attempt=2)
    assert better.event.usage["input_tokens"] == Decimal(3)
    empty = _play(folder, prompt("say nothing"))
    assert (empty.event.answer, empty.event.requests) == (None, ())
    assert _play(folder, prompt("say nothing"), node="other").event.error == "script_mismatch"


@proves("R-LOOP-10", part="deterministic")
def test_the_same_prompt_gives_the_same_bytes_and_usage(folder: Path) -> None:
    request = prompt("orders are open: order A-1")
    first, second = _play(folder, request), _play(folder, request)
    assert (first.event, first.bodies) == (second.event, second.bodies)
    assert first.event.usage["input_tokens"] == -(-len(request) // 4)


@proves("R-LOOP-10", part="no turn numbers")
@pytest.mark.parametrize(
    "line",
    [
        "{when: {role: executor}, reply: {text: x}}",
        "{when: {contains: []}, reply: {text: x}}",
        "{when: {contains: ['']}, reply: {text: x}}",
        "{when: {contains: ['/.*/']}, reply: {text: x}}",
        "{when: {contains: ['hello'], turn: 3}, reply: {text: x}}",
        "{when: {contains: ['hello']}}",
        "{when: {contains: ['hello']}, reply: {text: x}, fail: {error: timeout}}",
        "{when: {contains: ['hello']}, fail: {error: bad_luck}}",
        "{when: {contains: ['hello']}, reply: {text: '{{who}}'}}",
        "{when: {contains: ['hello']}, take: {who: 'no group'}, reply: {text: x}}",
        "{when: {contains: ['hello']}, take_all: ['(no) name'], reply: {text: x}}",
        "{when: {contains: ['hello']}, take_all: ['(?P<who>x)'], reply: {text: '{{whom}}'}}",
        "{when: {contains: ['/(/']}, reply: {text: x}}",
    ],
)
def test_a_line_that_demands_nothing_or_says_nothing_sound_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.yaml").write_text(f"lines: [{line}]")
    with pytest.raises(ScenarioInvalid):
        load_scenario("bad", tmp_path)


@pytest.mark.parametrize("name", ["absent", "../etc/passwd", ""])
def test_a_scenario_that_is_not_there_is_an_outcome_too(loop: EffectLoop, name: str) -> None:
    body = prompt()
    gateway = ModelGateway()
    started = gateway.start(loop, call_model(body), body, scripted_profile(name), SALT, ScriptedPermit())
    assert started.done()
    assert read(started.result()).event.error == "rejected"


def test_every_scenario_that_ships_can_be_played() -> None:
    assert {"tool_loop", "support_refund"} <= set(scenario_names())
    assert all(isinstance(load_scenario(name), Scenario) for name in scenario_names())


# -- the shipped scenarios against prompts as the context compiler writes them ---------------------------


def _fact(tool: str, trust: str = "trusted", **values: Any) -> Fact:
    return Fact(
        version=1, digest="0" * 64, tool=tool, call="c1", node="n", validator="schema", record=1, at=NOON,
        trust=cast("Any", trust), values=values,
    )  # fmt: skip


def _compiled(objective: str, facts: dict[str, Fact]) -> str:
    """The situation as core/llm/prompt_builder.py writes it for a state with these facts."""
    state = RunState(position="act", limits={"model_turns": Decimal(10)}, facts=facts)
    manifest = SimpleNamespace(goal=Goal(objective=objective), core_version=CORE_VERSION)
    graph = SimpleNamespace(spec=SimpleNamespace(input_schema={}))
    view = SimpleNamespace(manifest=manifest, state=state, desk=ContentStore(b"", {}), graph=graph)
    return _build_situation_message(cast("Any", view))


def _shipped(name: str, role: str, objective: str, facts: dict[str, Fact]) -> Told:
    request = prompt(_compiled(objective, facts), role=role)
    return read(play_scenario(call_model(request, role=role), request, scripted_profile(name), SALT))


def test_the_tool_loop_scenario_calculates_twice_tells_the_time_and_answers_from_facts() -> None:
    objective = "How much is 3 * 129.90, and with 19 % tax?"
    first = _shipped("tool_loop", "executor", objective, {})
    assert first.document(first.event.requests[0].arguments) == {"expression": "3 * 129.90"}
    facts = {"f1": _fact("calculator.evaluate", expression="3 * 129.90", result="389.70")}
    second = _shipped("tool_loop", "executor", objective, facts)
    assert [request.name for request in second.event.requests] == ["calculator.evaluate", "clock.now"]
    expression = second.document(second.event.requests[0].arguments)["expression"]
    assert expression == "round(389.70 * (100 + 19) / 100, 2)"
    facts["f2"] = _fact("calculator.evaluate", expression=expression, result="463.74")
    facts["f3"] = _fact("clock.now", utc="2026-11-21T12:00:00Z", local="x", zone="UTC")
    answer = _shipped("tool_loop", "executor", objective, facts)
    assert answer.text(answer.event.answer) == (
        "3 * 129.90 = 389.70 [f1]; in all 463.74 [f2]. Worked out at 2026-11-21T12:00:00Z [f3]."
    )


@pytest.mark.parametrize("objective", ["How much is (12 + 30) * 2?", "Please tell me: how much is 7/2"])
def test_the_tool_loop_scenario_needs_no_tax(objective: str) -> None:
    assert _shipped("tool_loop", "executor", objective, {}).event.requests
    facts = {"f1": _fact("calculator.evaluate", expression="7/2", result="3.5")}
    second = _shipped("tool_loop", "executor", objective, facts)
    assert second.document(second.event.requests[0].arguments) == {"expression": "round(3.5, 2)"}


@pytest.mark.parametrize("customer", ["Corner Café", "東京珈琲店", "Garage Nº 5"])
def test_the_refund_scenario_writes_to_the_customer_from_the_facts(customer: str) -> None:
    order = _fact(
        "orders.lookup", "untrusted", customer=customer, currency="USD", order_id="A-1001", total="129.90"
    )
    refund = _fact(
        "payments.refund", amount="129.90", currency="USD", order_id="A-1001", refund_id="RF-000003"
    )
    told = _shipped("support_refund", "writer", "Refund", {"order": order, "refund": refund})
    text = told.text(told.event.answer)
    assert text.startswith(f"Dear {customer},")
    assert "refunded 129.90 USD for your order A-1001" in text
    without = _shipped("support_refund", "writer", "Refund", {"order": order})
    assert without.event.error == "script_mismatch"


@proves("R-BUDGET-17", part="scripted model")
def test_the_scripted_model_asks_the_wall_too(loop: EffectLoop) -> None:
    body = prompt("How much is 1 + 1?")
    permit = ScriptedPermit(reason="fence")
    gateway = ModelGateway()
    started = gateway.start(loop, call_model(body), body, scripted_profile("tool_loop"), SALT, permit)
    assert read(started.result()).event.error == "refused_by_wall"

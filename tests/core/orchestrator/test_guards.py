"""The guards: what each asks, and what a wrong name or parameter is told."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.domain.graph import GuardSpec
from orchestrator.core.domain.run_state import Call, Counters, Fact, Failure, MalformedTool, RunState
from orchestrator.core.workflow.edge_guards import GUARDS, holds, validate_guard
from tests.proves import proves

HEX = "a" * 64


def state(**fields: Any) -> RunState:
    return RunState(position="here", limits={"steps": Decimal(1)}, **fields)


def call(by: str, *, edited: bool = False) -> Call:
    return Call(id="c1", by=by, provider_id="c1", tool="t.read", raw=HEX, edited=edited)


def with_fact(**values: Small) -> RunState:
    fact = Fact(
        version=1, digest=HEX, tool="t.read", call="c1", node="n", validator="schema", trust="trusted",
        record=1, at=datetime(2026, 1, 1, tzinfo=UTC), values=values,
    )  # fmt: skip
    return state(facts={"order": fact})


def asks(name: str, of: RunState, **parameters: Small) -> bool:
    spec = GuardSpec(name=name, parameters=parameters)
    assert validate_guard(spec) == []
    return holds(spec, of)


def test_the_queue_guards_are_each_others_opposite() -> None:
    waiting, idle = state(queue=(call("model"),)), state()
    assert asks("queue_left", waiting)
    assert not asks("queue_left", idle)
    assert asks("queue_empty", idle)
    assert not asks("queue_empty", waiting)


def test_a_fact_is_there_or_not() -> None:
    assert asks("facts", with_fact(), fact="order")
    assert not asks("facts", state(), fact="order")


def test_a_value_equals_only_its_own_type() -> None:
    assert asks("fact_is", with_fact(refundable=True), fact="order", field="refundable", equals=True)
    assert not asks("fact_is", with_fact(refundable=1), fact="order", field="refundable", equals=True)
    assert not asks("fact_is", with_fact(), fact="order", field="refundable", equals=True)


@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("200.00", True),
        (200, True),
        ("200.01", False),
        ("much", False),
        (None, False),
        (True, False),
        ("NaN", False),
    ],
)
def test_an_amount_is_compared_exactly(value: Small, held: bool) -> None:
    assert asks("fact_at_most", with_fact(total=value), fact="order", field="total", amount="200") is held


def test_the_asker_is_that_of_the_call_at_hand() -> None:
    assert asks("asked_by", state(batch=(call("lookup"),)), node="lookup")
    assert asks("asked_by", state(queue=(call("lookup"),)), node="lookup")
    assert asks("asked_by", state(last_askers=("model",)), node="model")
    assert not asks("asked_by", state(), node="lookup")


def test_a_failed_step_is_known_until_one_succeeds() -> None:
    failure = Failure(tool="t.read", error="timeout", attempt=1, observation=None)
    failing = state(counters=Counters(errors=1), failures=(failure,))
    recovered = state(failures=(failure,))
    assert asks("step_failed", failing)
    assert asks("failed_with", failing, error="timeout")
    assert not asks("failed_with", failing, error="refused")
    assert not asks("step_failed", recovered)
    assert not asks("failed_with", recovered, error="timeout")


def test_repairs_and_refusals_run_out() -> None:
    worn = state(counters=Counters(repairs=2, refusals=2))
    assert asks("repairs_left", worn, limit=3)
    assert not asks("repairs_left", worn, limit=2)
    assert asks("refusals_left", worn, limit=3)
    assert not asks("refusals_left", worn, limit=2)
    assert asks("refusals_spent", worn, limit=2)
    assert not asks("refusals_spent", worn, limit=3)


def test_visits_are_counted_per_node() -> None:
    assert asks("visited_less_than", state(visits={"scope": 2}), node="scope", times=3)
    assert not asks("visited_less_than", state(visits={"scope": 3}), node="scope", times=3)


def test_edits_and_intents() -> None:
    assert asks("edited", state(queue=(call("model", edited=True),)))
    assert not asks("edited", state(queue=(call("model"), call("model", edited=True))))
    assert asks("intent_is", state(intent="refund"), intent="refund")
    assert not asks("intent_is", state(intent="other"), intent="refund")


@proves("R-GRAPH-2", part="unknown guard")
@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("shell", {}, "there is no guard called 'shell'"),
        ("queue_left", {"node": "x"}, "node: Extra inputs are not permitted"),
        ("facts", {}, "fact: Field required"),
        ("repairs_left", {"limit": 0}, "limit: Input should be greater than or equal to 1"),
        ("repairs_left", {"limit": True}, "limit: Input should be a valid integer"),
        ("fact_at_most", {"fact": "f", "field": "x", "amount": "much"}, "amount: 'much' is no number"),
        (
            "fact_at_most",
            {"fact": "f", "field": "x", "amount": "Infinity"},
            "amount: 'Infinity' is no number",
        ),
    ],
)
def test_a_wrong_guard_is_told_what_is_wrong(name: str, parameters: dict[str, Small], said: str) -> None:
    assert any(said in sentence for sentence in validate_guard(GuardSpec(name=name, parameters=parameters)))


def test_every_guard_has_a_sentence() -> None:
    assert all(guard.sentence.endswith(".") and guard.name == name for name, guard in GUARDS.items())


def test_repairs_of_arguments_are_counted_tool_by_tool() -> None:
    twice_each = {tool: MalformedTool(turns=2, last=4) for tool in ("t.read", "t.bare")}
    assert asks("malformed_spent", state(malformed=twice_each), limit=2)
    assert not asks("malformed_spent", state(malformed=twice_each), limit=3)
    assert not asks("malformed_spent", state(), limit=1)

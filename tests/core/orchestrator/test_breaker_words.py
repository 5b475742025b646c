"""What a breaker says: its figures, whose limit it was, what was refused, the way back (R-BUDGET-12)."""

from decimal import Decimal

import pytest

from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.readmodel.breaker_messages import (
    WORDS,
    Setters,
    Trip,
    describe_limit_origins,
    in_one,
    told_of,
)
from tests.proves import proves

SETTERS = Setters(
    boundary="boundary support v3",
    dimensions={"model_turns": "the task, as Ada submitted it", "wall_clock_seconds": "workflow refund v2"},
    tools={"payments.refund": "tool payments.refund v4"},
    profiles={"openai:m": "model profile openai:m"},
)
ALL = ("wall_clock", "repeated_call", "retry_storm", "budget_gate", "context_pressure", "privileged_action",
       "safety")  # fmt: skip


def trip(breaker: str, reason: str, subject: str = "", limit: str = "2", actual: str = "3") -> Trip:
    return Trip(breaker=breaker, reason=reason, subject=subject, limit=Decimal(limit), actual=Decimal(actual))


@proves("R-BUDGET-12", part="words")
@pytest.mark.parametrize("breaker", ALL)
def test_each_of_the_seven_has_its_words_and_a_way_back(breaker: str) -> None:
    told = told_of(trip(breaker, "model_turns", "payments.refund"), SETTERS)
    assert told.title == WORDS[breaker].title
    assert told.what
    assert told.refused
    assert told.back
    assert told.set_by
    assert "{" not in told.what + told.refused


@pytest.mark.parametrize(
    ("tripped", "setter"),
    [
        (trip("budget_gate", "model_turns"), "the task, as Ada submitted it"),
        (trip("budget_gate", "cost_usd").evolve(account="tenant"), "the tenant's ceiling"),
        (trip("budget_gate", "cost_usd").evolve(account="tenant_day"), "the tenant's ceiling for a day"),
        (trip("budget_gate", "cost_usd").evolve(account="tenant_month"), "the tenant's ceiling for a month"),
        (trip("wall_clock", "wall_clock"), "workflow refund v2"),
        (trip("repeated_call", "identical_call", "orders.lookup"), "boundary support v3"),
        (trip("retry_storm", "timeout", "payments.refund"), "tool payments.refund v4"),
        (trip("retry_storm", "server_error"), "the model's profile"),
        (trip("privileged_action", "destructive", "payments.refund"), "tool payments.refund v4"),
        (trip("safety", "repeated_denials", "ledger.post"), "boundary support v3"),
        (trip("safety", "secret:api_key", "reply"), "the safety rules of this house"),
        (trip("context_pressure", "context_window"), "the window of the model"),
        (trip("circuit", "open", "orders.lookup"), "the settings of this house"),
    ],
)
def test_the_limit_has_an_owner(tripped: Trip, setter: str) -> None:
    assert told_of(tripped, SETTERS).set_by == setter


def test_a_gate_says_what_was_needed_and_what_was_left() -> None:
    told = told_of(trip("budget_gate", "cost_usd", limit="0.0100", actual="0.25"), SETTERS)
    assert told.what == "the next step needed $0.25 of cost, and $0.01 was left"


@proves("R-BUDGET-10", part="the sentence names ceiling, window, setter and what was refused")
def test_a_tenants_ceiling_is_named_with_its_amount_its_setter_and_what_was_refused() -> None:
    tripped = trip("budget_gate", "cost_usd", limit="0.01", actual="0.25").evolve(
        account="tenant_day", ceiling=Decimal("0.50")
    )
    setters = SETTERS.evolve(windows={"tenant_day": "Ada on 2026-11-21"})
    assert in_one(told_of(tripped, setters)) == (
        "The tenant's ceiling for a day is $0.5: the next step needed $0.25 of cost, and $0.01 was left. "
        "That step was not started. It was set by Ada on 2026-11-21."
    )


def test_a_gate_that_foresaw_the_end_says_so_and_whose_limit_it_was() -> None:
    told = told_of(trip("budget_gate", "model_turns").evolve(account="estimate"), SETTERS)
    assert told.what == "what is left to do needs 3 of model turns at least, and 2 was left"
    assert told.set_by == "the task, as Ada submitted it"


@proves("R-BUDGET-12", part="the gate names the run's own limit and its amount")
@pytest.mark.parametrize(
    ("account", "said"),
    [
        ("run", "the run's limit of cost is $0.08: the next step needed $0.25, and $0.01 was left"),
        (
            "estimate",
            "the run's limit of cost is $0.08: what is left to do needs $0.25 at least, and $0.01 was left",
        ),
    ],
)
def test_a_gate_names_the_runs_own_limit_with_its_amount(account: str, said: str) -> None:
    tripped = trip("budget_gate", "cost_usd", limit="0.01", actual="0.25")
    told = told_of(tripped.evolve(account=account, ceiling=Decimal("0.08")), SETTERS)
    assert (told.what, told.set_by) == (said, "boundary support v3")


def test_an_unknown_breaker_of_a_later_version_is_said_plainly() -> None:
    assert told_of(Trip(breaker="new", reason="some_reason"), SETTERS).what.startswith("some reason")


def test_each_limit_is_traced_to_whoever_set_it() -> None:
    boundary = Boundary(slug="b", version=2, budget={"steps": Decimal(9), "model_turns": Decimal(8)})
    admitted = {
        "steps": 9,
        "model_turns": 5,
        "tool_calls": 4,
        "cost_usd": 5,
        "output_tokens": 7,
        "transitions": 1,
    }
    found = describe_limit_origins(
        {name: Decimal(amount) for name, amount in admitted.items()},
        boundary=boundary,
        workflow="workflow w v1",
        workflow_budget={"tool_calls": 4},
        defaults={name: Decimal(amount) for name, amount in (admitted | {"model_turns": 8}).items()},
        ceiling=Decimal(5),
        task="the task",
    )
    assert found == {
        "steps": "boundary b v2",
        "model_turns": "the task",
        "tool_calls": "workflow w v1",
        "cost_usd": "the tenant's ceiling for one run",
        "output_tokens": "the defaults of this house",
        "transitions": "workflow w v1, as it was compiled",
    }

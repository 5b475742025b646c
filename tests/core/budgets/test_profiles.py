"""The limit tables stand against the specification's figures, written here a second time by column."""

from decimal import Decimal

import pytest

from budgets.core.limit_profiles import PROFILES, limits_for
from tests.proves import proves

SPECIFIED = {
    "steps": "15 30 10 15 15",
    "model_turns": "20 40 12 20 20",
    "tool_calls": "30 50 15 20 20",
    "external_calls": "5 10 2 5 5",
    "input_tokens": "200000 400000 100000 150000 200000",
    "output_tokens": "30000 60000 15000 20000 20000",
    "cost_usd": "2 5 1 1 2",
    "wall_clock_seconds": "300 600 120 180 300",
    "retries": "3 5 2 2 2",
    "reflections": "1 2 1 1 1",
    "replans": "2 2 2 2 2",
    "context_tokens": "100000 200000 50000 60000 80000",
    "memory_writes": "2 5 0 1 0",
    "side_effects": "0 2 0 0 0",
    "granted_side_effects": "1 5 2 4 2",
    "depth": "2 2 2 2 2",
}


@proves("R-BUDGET-1", part="profiles")
@pytest.mark.parametrize(
    ("column", "name"), list(enumerate(["research", "coding", "sre", "support", "procurement"]))
)
def test_a_profile_has_the_specified_figures(column: int, name: str) -> None:
    assert dict(PROFILES[name]) == {
        dimension: Decimal(figures.split()[column]) for dimension, figures in SPECIFIED.items()
    }


def test_a_workflow_that_says_nothing_has_the_plain_defaults() -> None:
    assert dict(limits_for("interactive", stated={})) == {
        "model_turns": 10, "total_tokens": 50_000, "wall_clock_seconds": 60,
    }  # fmt: skip
    assert limits_for("async", stated={})["wall_clock_seconds"] == 300


def test_total_tokens_default_only_where_no_token_limit_is_set() -> None:
    assert limits_for("async", stated={"output_tokens": Decimal(9)}).get("total_tokens") is None
    assert limits_for("async", profile="support", stated={}).get("total_tokens") is None


def test_what_a_workflow_states_stands_over_its_profile() -> None:
    assert limits_for("async", profile="sre", stated={"steps": Decimal(4)})["steps"] == 4

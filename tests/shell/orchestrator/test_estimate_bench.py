"""The bench of estimates passes for what it measured, never for having measured nothing."""

from collections import Counter, defaultdict
from decimal import Decimal

import pytest

from bench.estimates import Seen, Tally, apart, count, goals_of, known, narrow, needs, whole
from budgets.core.statistics.forecast import Interval
from orchestrator import bundled_content

HELD = Seen("steps", Interval(lower=Decimal(1), upper=Decimal(3)), Decimal(2))
MISSED = HELD._replace(rest=Decimal(4))


@pytest.mark.parametrize(
    ("steps", "held", "enough"),
    [
        ([], False, False),
        ([[], []], False, False),
        ([[HELD], []], True, False),
        ([[HELD], [HELD, HELD], []], True, True),
        ([[HELD], [HELD, MISSED], [HELD]], False, True),
    ],
)
def test_only_steps_with_bounds_count_and_most_have_some(
    steps: list[list[Seen]], *, held: bool, enough: bool
) -> None:
    tally = Tally(Counter(), Counter(), defaultdict(list))
    count(tally, steps)
    assert whole(tally.steps).held is held
    assert known("tool-loop", tally.steps).held is enough


@pytest.mark.parametrize(
    ("widths", "passes"),
    [
        ({}, False),
        ({"steps": []}, False),
        ({"steps": ["0.5", "1", "9"]}, True),
        ({"steps": ["0.5"], "cost_usd": ["3", "9"]}, False),
    ],
)
def test_intervals_that_hold_because_they_are_wide_do_not_pass(
    widths: dict[str, list[str]], *, passes: bool
) -> None:
    found = {name: [Decimal(width) for width in each] for name, each in widths.items()}
    assert narrow(found).held is passes


@pytest.mark.parametrize("slug", sorted(bundled_content.load_bundled_workflows()))
def test_no_goal_that_was_learnt_from_is_measured_with(slug: str) -> None:
    goals = goals_of(slug)
    learnt, unseen = apart(goals)
    assert len(learnt) + len(unseen) == len(goals)
    assert not {goal.model_dump_json() for goal in learnt} & {goal.model_dump_json() for goal in unseen}
    with pytest.raises(ValueError, match="not enough"):
        apart(goals[:1])


def test_where_too_few_runs_were_seen_nothing_is_foretold() -> None:
    assert needs({}) == {}
    first = {"steps": Decimal(2), "model_turns": Decimal(2), "tool_calls": Decimal(0)}
    later = first | {"steps": Decimal(1), "model_turns": Decimal(1)}
    assert needs({"m:act:1": later, "m:act:0": first}) == {"model_turns": Decimal(2)}

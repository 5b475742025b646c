"""The tables that hold every kind: phases (R-LOOP-4) and allowed moves (R-GRAPH-20)."""

import pytest

from orchestrator.core.compiler.checks.termination import BY_OUTCOME
from orchestrator.core.compiler.checks.wiring import EXCEPTIONS, TABLE, targets_of
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.nodes import discover_node_kinds
from tests.core.orchestrator.faulty import before, numbers
from tests.factories.graphs import document, edge
from tests.proves import proves

OUTCOMES = [(kind.kind, outcome) for kind in discover_node_kinds().values() for outcome in kind.outcomes]


@proves("R-GRAPH-20", part="complete")
def test_every_outcome_of_every_kind_has_its_row() -> None:
    assert sorted(TABLE) == sorted(OUTCOMES)


def test_the_tables_name_only_kinds_and_outcomes_that_exist() -> None:
    named = [target for source in OUTCOMES for target in targets_of(*source)]
    assert [kind for kind in named if kind not in discover_node_kinds()] == []
    assert [row for row in BY_OUTCOME if row not in OUTCOMES] == []
    assert [row for given in EXCEPTIONS.values() for row in given.outcomes if row not in OUTCOMES] == []


def test_every_exception_says_why() -> None:
    assert all(given.why and given.targets for given in EXCEPTIONS.values())


@proves("R-GRAPH-20", part="one way in")
@pytest.mark.parametrize(
    ("target", "ways"),
    [
        ("invoke_tool", [("check_tool", "eligible")]),
        ("capture_observation", [("invoke_tool", "dispatched")]),
        ("verify_observation", [("capture_observation", "captured")]),
        ("update_state", [("verify_observation", "verified"), ("verify_observation", "failed")]),
        ("approval", [("check_tool", "needs_approval")]),
    ],
)
def test_a_rung_of_the_ladder_is_entered_only_from_the_one_below(
    target: str, ways: list[tuple[str, str]]
) -> None:
    assert [source for source in TABLE if target in targets_of(*source)] == ways


@proves("R-GRAPH-20", part="approval is checked again")
def test_a_granted_call_goes_back_to_its_check() -> None:
    assert targets_of("approval", "approved") == targets_of("approval", "edited") == ("check_tool",)


@proves("R-LOOP-4", part="table")
@pytest.mark.parametrize("name", sorted(discover_node_kinds()))
def test_every_outcome_has_its_phase_and_every_kind_its_artifact(name: str) -> None:
    kind = discover_node_kinds()[name]
    assert sorted(kind.phases) == sorted(kind.outcomes)
    assert kind.artifact


@proves("R-GRAPH-19", part="no requested call is passed by")
@pytest.mark.parametrize(
    ("outcome", "guard", "target"),
    [("denied", "queue_empty", "check"), ("denied", None, "act-1"), ("malformed", "edited", "act-1")],
)
def test_work_does_not_go_on_past_a_call_that_waits(outcome: str, guard: str | None, target: str) -> None:
    compile_graph(document("act"))
    unguarded = edge("check", outcome, target, guard)
    assert 18 in numbers(before(document("act"), unguarded))

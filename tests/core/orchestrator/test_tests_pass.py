"""A criterion that reads a test suite: whole, and of the files as they are (R-LOOP-21)."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.core.common.goal import Criterion
from orchestrator.core.compiler.checks.references import _find_criterion_errors
from orchestrator.core.domain.run_state import Fact, RunState, SideEffect
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.core.results.validators import unmet
from orchestrator.core.workflow.node_protocol import NodeContext
from tests.proves import proves

GOOD = {"whole": True, "failed": 0, "errors": 0, "folder": ""}
BAD = {"whole": False, "failed": 2, "errors": 1, "folder": "", "first": "test_add"}
SKIPPED = {
    "whole": False, "end": "ended", "passed": 1, "failed": 0, "errors": 0, "skipped": 2, "folder": "",
}  # fmt: skip
SEEN = {"state": "a" * 64}
RUN, DIFF = "sandbox.tests", "files.apply_diff"


def said(
    *facts: tuple[str, dict[str, Any]], deeds: dict[str, SideEffect] | None = None, **parameters: Any
) -> list[str]:
    """What the criterion misses after these facts, oldest first, and these changes."""
    held = {
        f"f{number}": Fact(
            version=1, digest="0" * 64, tool=tool, call=f"c{number}", node="act", validator="schema",
            trust="untrusted", record=number, at=datetime(2026, 1, 1, tzinfo=UTC), values=values,
        )
        for number, (tool, values) in enumerate(facts)
    }  # fmt: skip
    state = RunState(position="judge", facts=held, limits={}, deeds=deeds or {})
    view = cast(
        "NodeContext", SimpleNamespace(state=state, manifest=SimpleNamespace(core_version=CORE_VERSION))
    )
    return unmet(view, "Done.", [Criterion(validator="tests_pass", parameters=parameters)])


@proves("R-LOOP-21", part="a criterion reads a suite")
@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ([], "no tests were run"),
        ([(RUN, BAD)], "2 tests failed and 1 came to no end; the first is test_add"),
        ([(RUN, GOOD), (DIFF, {})], "changed after the tests were run"),
        ([(RUN, GOOD), (RUN, BAD)], "2 tests failed"),
        ([(RUN, SKIPPED)], "2 were skipped"),
        ([(RUN, {**GOOD, "state": "b" * 64}), ("files.read", SEEN)], "changed after the tests were run"),
    ],
)
def test_it_does_not_hold_and_says_why(facts: list[tuple[str, dict[str, Any]]], word: str) -> None:
    (fault,) = said(*facts)
    assert word in fault


@proves("R-LOOP-21", part="a criterion reads a suite of the files as they are")
@pytest.mark.parametrize(
    "facts",
    [
        [(RUN, GOOD)],
        [(RUN, BAD), (DIFF, {}), (RUN, GOOD)],
        [(RUN, GOOD), (DIFF, {"isolated": True}), ("files.read", {})],
        [("files.read", {"state": "b" * 64}), (RUN, {**GOOD, **SEEN}), ("files.read", SEEN)],
    ],
)
def test_it_holds_for_a_whole_suite_after_the_last_change(facts: list[tuple[str, dict[str, Any]]]) -> None:
    assert said(*facts) == []


@proves("R-LOOP-21", part="a criterion reads a suite of files that nobody may have changed")
@pytest.mark.parametrize("standing", ["in_doubt", "done"])
def test_a_change_in_doubt_or_not_verified_after_the_suite_is_seen(standing: Any) -> None:
    deed = SideEffect(tool=DIFF, arguments="0" * 64, standing=standing)
    (fault,) = said((RUN, GOOD), deeds={"c1": deed})
    assert "changed after the tests were run" in fault
    assert said((DIFF, {}), (RUN, GOOD), deeds={"c0": deed}) == []
    assert said((RUN, GOOD), (DIFF, {"isolated": True}), deeds={"c1": deed}) == []


def test_a_workflow_may_say_how_many_tests_are_skipped() -> None:
    assert said((RUN, SKIPPED), skipped=2) == []
    assert "2 were skipped" in said((RUN, SKIPPED), skipped=1)[0]
    assert said((RUN, {**SKIPPED, "end": "timeout"}), skipped=2)
    assert said((RUN, {**SKIPPED, "passed": 0}), skipped=2)


def test_a_folder_has_tests_of_its_own() -> None:
    assert said((RUN, {**GOOD, "folder": "src"}), folder="src") == []
    assert "no tests were run" in said((RUN, {**GOOD, "folder": "src"}))[0]
    assert "no tests were run in src" in said((RUN, GOOD), folder="src")[0]


def test_a_workflow_may_ask_for_it() -> None:
    assert (
        list(_find_criterion_errors(Criterion(validator="tests_pass", parameters={"folder": "tests"}))) == []
    )

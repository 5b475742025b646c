"""What became of changes in doubt, learnt after the end: every attempt of a call is the same change."""

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.core.common.run_status import Status, TerminalCode
from orchestrator.core.compensation.plan import UNANSWERED
from orchestrator.core.domain.effects import SentChange
from orchestrator.core.domain.run_events import LateAnswer
from orchestrator.core.domain.run_state import Counters, OpenEffect, RunState, SideEffect, Verdict
from orchestrator.core.engine.late_reconciliation import (
    Why,
    apply_late_event,
    list_doubts,
    settled_calls,
    with_learnt,
)
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, TOOLS
from tests.core.orchestrator.simulation import manifest, pins
from tests.proves import proves

AT = datetime(2026, 1, 1, tzinfo=UTC)
A, D = "a" * 64, "d" * 64
KEY = f"ledger.post:{D}"
LEFT: dict[str, Any] = {"standing": "left", "why": "undo_failed"}
ENDED = RunState(
    position="act", limits={}, status=Status.CANCELLED, outcome=TerminalCode.USER_CANCEL,
    counters=Counters(calls=7),
)  # fmt: skip
CHANGE = SentChange(
    effect="e2", call="c3", tool="ledger.post", key="k", arguments=A, argument_digest=D,
    attempts=("e1", "e2"),
)  # fmt: skip
OPEN = OpenEffect(call="c3", tool="ledger.post", effect="e1", key="k", error="in_doubt")
DEED = SideEffect(tool="ledger.post", arguments=A)
DENIED = {"e2": Verdict(verdict="not_happened", call="c3", by="p", attempts=("e1", "e2"))}
UNDO = CHANGE.evolve(call="u3")


@proves("R-TOOL-9", part="which changes are in doubt after the end")
@pytest.mark.parametrize(
    ("state", "change", "late", "why"),
    [
        (ENDED.evolve(opened={KEY: OPEN}), CHANGE, (), "in_doubt"),
        (ENDED.evolve(opened={KEY: OPEN.evolve(error="crashed")}), CHANGE, (), "open"),
        (ENDED.evolve(opened={KEY: OPEN.evolve(error="happened")}), CHANGE, (), None),
        (ENDED.evolve(deeds={"c3": DEED.evolve(standing="left", why="in_doubt")}), CHANGE, (), "in_doubt"),
        (ENDED.evolve(deeds={"c3": DEED}), CHANGE, ("e1",), None),
        (ENDED, CHANGE, ("e1",), "learnt_late"),
        (ENDED, CHANGE, ("other",), None),
        (ENDED.evolve(deeds={"c3": DEED.evolve(standing="left", why=UNANSWERED)}), UNDO, (), "undo_in_doubt"),
        (ENDED.evolve(deeds={"c3": DEED.evolve(**LEFT)}), UNDO, ("e1",), "learnt_late"),
        (ENDED.evolve(deeds={"c3": DEED.evolve(standing="undone")}), UNDO, ("e1",), None),
        (ENDED.evolve(reconciled=DENIED), CHANGE, ("e1",), None),
    ],
)  # fmt: skip
def test_a_change_is_in_doubt_as_long_as_nobody_knows(
    state: RunState, change: SentChange, late: tuple[str, ...], why: Why | None
) -> None:
    assert [one.why for one in list_doubts(state, (change,), frozenset(late))] == ([why] if why else [])


@proves("R-TOOL-9", part="an outcome of any attempt reopens what was denied")
@pytest.mark.parametrize(
    ("effect", "status", "verdict"),
    [
        ("e1", "tool_answered", "reopened"),
        ("e2", "timeout", "reopened"),
        ("e1", "abandoned", "not_happened"),
        ("e9", "tool_answered", "not_happened"),
    ],
)
def test_a_late_outcome_of_any_attempt_reopens_a_denial(effect: str, status: str, verdict: str) -> None:
    state = ENDED.evolve(reconciled=DENIED)
    after, _ = apply_late_event(
        manifest(GRAPH, pins(TOOLS, BOUNDARY, ("tool-loop",)), {}),
        state,
        LateAnswer(at=AT, effect=effect, status=status),
    )
    assert after.reconciled["e2"].verdict == verdict
    assert settled_calls(after) == (frozenset() if verdict == "reopened" else {"c3"})


@proves("R-SESS-9", part="call numbers go on from the end of the run")
def test_a_retry_knows_what_happened_and_numbers_its_calls_on() -> None:
    made = {"e2": DENIED["e2"].evolve(verdict="happened")}
    begun, end = ENDED.evolve(counters=Counters(calls=2)), ENDED.evolve(reconciled=made, deeds={"c3": DEED})
    known = with_learnt(begun, end)
    assert (known.deeds, known.counters.calls) == ({"c3": DEED}, 7)
    opened = ENDED.evolve(opened={KEY: OPEN})
    assert with_learnt(opened, ENDED.evolve(reconciled=DENIED)).opened == {}

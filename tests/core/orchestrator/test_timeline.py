"""Events become rows that people read."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.readmodel.timeline import KINDS, EventLabel, Mood, bar_of, fold_events
from tests.proves import proves
from traces.core.events.trace_events import AnyBody

START = datetime(2026, 1, 1, tzinfo=UTC)


def told(seq: int, kind: str, *, second: float | None = None, **said: Any) -> EventLabel:
    return EventLabel(
        seq, START + timedelta(seconds=seq if second is None else second), kind, "interlock", said
    )


CALL = [
    told(1, "call_requested", call="c1", tool="orders.lookup"),
    told(2, "call_checked", call="c1", step="risk", decision="allow", rule="read_only"),
    told(3, "call_attempted", call="c1", effect="e1", tool="orders.lookup", attempt=1),
    told(4, "failure_committed", call="c1", tool="orders.lookup", error="timeout", attempt=1),
    told(5, "call_attempted", call="c1", effect="e2", tool="orders.lookup", attempt=2),
    told(6, "budget_settled", effect="e2", amounts={"cost_usd": "0.25", "tool_calls": "1"}),
    told(7, "call_observed", call="c1", effect="e2", status="ok"),
    told(8, "fact_committed", call="c1", fact="order"),
]


@proves("R-UI-3", part="timeline")
def test_a_call_with_its_attempts_and_result_is_one_row() -> None:
    (row,) = fold_events(CALL)
    assert (row.seq, row.last, row.name, row.attempts) == (1, 8, "orders.lookup", 2)
    assert (row.mood, row.fact, str(row.cost)) == (Mood.DONE, "order", "0.25")


@proves("R-TOOL-15", part="the timeline says what became of each deed")
def test_a_deed_that_was_undone_or_left_says_so_in_its_row() -> None:
    (undone,) = fold_events([*CALL, told(9, "deed_undone", call="c1", wanted="Order 7 stands cancelled.")])
    assert (undone.word, undone.detail, undone.mood) == ("undone", "Order 7 stands cancelled.", Mood.NOTE)
    (left,) = fold_events([*CALL, told(9, "deed_left", call="c1", why="irreversible")])
    assert (left.word, left.detail, left.mood) == (
        "left for people", "it cannot be taken back", Mood.PROBLEM,
    )  # fmt: skip


@proves("R-UI-3", part="the timeline says what a person sent back")
def test_a_call_that_was_sent_back_is_no_problem() -> None:
    (row,) = fold_events([*CALL[:2], told(9, "call_not_run", call="c1", status="sent_back", detail="Why?")])
    assert (row.word, row.detail, row.mood) == ("sent back", "Why?", Mood.NOTE)
    (row,) = fold_events([*CALL[:2], told(9, "call_not_run", call="c1", status="rejected", detail="No.")])
    assert (row.word, row.detail, row.mood) == ("not run", "rejected: No.", Mood.PROBLEM)


def test_a_row_grows_under_the_same_name() -> None:
    seen = [fold_events(CALL[:length])[0] for length in range(1, 4)]
    assert {row.seq for row in seen} == {1}
    assert [row.word for row in seen] == ["asked for", "checked", "sent"]


@proves("R-UI-3", part="a call's time is its own")
def test_what_people_took_is_no_part_of_a_call_s_time() -> None:
    asked: dict[str, Any] = {"call": "c1", "step": "risk", "rule": "destructive"}
    (row,) = fold_events(
        [
            told(1, "call_requested", call="c1", tool="payments.refund"),
            told(2, "call_checked", decision="approval_required", **asked),
            told(3, "call_checked", second=602, decision="allow", **asked),
            told(4, "call_attempted", second=603, call="c1", effect="e1", tool="payments.refund", attempt=1),
            told(5, "call_in_doubt", second=604, call="c1", effect="e1"),
            told(6, "reconciled", second=904, call="c1"),
            told(7, "fact_committed", second=905, call="c1", fact="refund"),
        ]
    )
    assert row.took == 1 + 1 + 1 + 1


def test_a_word_of_people_is_told_in_words() -> None:
    (row,) = fold_events(
        [
            told(1, "approval_requested", request="r", queue="finance"),
            told(2, "approval_decided", request="r", decision="edit", role="reviewer"),
        ]
    )
    assert (row.word, row.detail) == ("approved with changes", "as reviewer")


def test_reading_back_is_no_attempt() -> None:
    back = told(9, "call_attempted", call="c1", effect="e3", tool="orders.find", attempt=1)
    assert fold_events([*CALL, back])[0].attempts == 2


def test_a_model_that_is_asked_again_stays_one_row() -> None:
    (row,) = fold_events(
        [
            told(1, "model_called", effect="a", role="executor", profile="gpt", attempt=1),
            told(2, "model_failed", effect="a", error="timeout"),
            told(3, "model_called", effect="b", role="executor", profile="gpt", attempt=2),
            told(4, "model_replied", effect="b", shape="requests", calls=2),
        ]
    )
    assert (row.attempts, row.word, row.mood) == (2, "asks for 2 calls", Mood.DONE)


def test_a_wait_is_told_before_the_row_that_follows_it() -> None:
    rows = fold_events(
        [
            told(1, "approval_requested", request="r", queue="finance"),
            told(2, "run_suspended", awaiting="awaiting_gate"),
            told(3, "approval_decided", second=300, request="r", decision="approve"),
            told(4, "output_drafted", second=301),
        ]
    )
    assert [row.idle for row in rows] == [None, timedelta(seconds=298)]
    assert rows[1].idle_why == "run_suspended"
    assert (rows[0].word, rows[0].took) == ("approved", 299)


def test_phases_that_were_merely_passed_have_no_row() -> None:
    assert (
        fold_events([told(1, "phase_noted", artifact="goal"), told(2, "phase_skipped", reason="none")]) == ()
    )


def test_what_went_wrong_is_a_problem() -> None:
    rows = fold_events(
        [
            told(1, "policy_decided", decision="deny", rule="scope:submit"),
            told(2, "reservation_refused", dimension="cost_usd", wanted="1"),
            told(3, "run_finished", terminal_code="BUDGET_EXHAUSTED"),
            told(4, "breaker_tripped", breaker="privileged_action"),
        ]
    )
    assert [row.mood for row in rows] == [Mood.PROBLEM] * 3


def test_events_of_a_row_that_began_before_the_stretch_are_left_out() -> None:
    assert fold_events(CALL[2:]) == ()


def test_every_kind_of_event_has_words() -> None:
    kinds = {body.model_fields["kind"].default for body in get_args(AnyBody)}
    assert kinds == set(KINDS)


@proves("R-UI-3", part="bars of one scale")
@pytest.mark.parametrize(
    ("seconds", "steps"),
    [
        (-1.0, 0), (0.0, 0), (0.01, 0), (0.1, 4), (1.0, 8), (10.0, 12), (60.0, 15), (100.0, 16),
        (1_000.0, 20), (3_600.0, 22), (86_400.0, 22),
    ],
)  # fmt: skip
def test_a_bar_grows_by_four_steps_with_each_tenfold(seconds: float, steps: int) -> None:
    assert bar_of(seconds) == steps


SECONDS = st.floats(min_value=-10, max_value=1e9)


@given(SECONDS, SECONDS)
def test_what_took_longer_has_no_shorter_bar_and_none_leaves_the_scale(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0 <= bar_of(less) <= bar_of(more) <= 22

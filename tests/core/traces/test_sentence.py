"""The one sentence a run answers."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proves import proves
from traces.core.run_sentence import SentenceFacts, compress_path, format_run_sentence

REFUND = SentenceFacts(
    workflow="support-refund", tools_allowed=("orders.lookup", "payments.refund"), ceiling=Decimal("2.00"),
    path=("intake", "lookup", "lookup", "lookup", "respond"),
    calls={"payments.refund": 1, "orders.lookup": 3},
    spent=Decimal("0.0420"), facts=("order", "refund"), status="completed", terminal_code="SUCCESS",
)  # fmt: skip


@proves("R-GRAPH-18")
def test_a_run_says_in_one_sentence_what_it_might_did_and_why_it_ended() -> None:
    assert format_run_sentence(REFUND) == (
        "Allowed to use orders.lookup, payments.refund for at most $2, "
        "support-refund went intake → lookup (3 times) → respond, "
        "called orders.lookup 3 times, payments.refund, spent $0.042, "
        "committed order, refund, and ended completed with SUCCESS."
    )


@proves("R-GRAPH-18", part="waiting")
def test_a_run_that_waits_says_for_what() -> None:
    waiting = REFUND.model_copy(
        update={
            "terminal_code": None,
            "status": "awaiting_gate",
            "waiting_for": "a decision of finance",
            "facts": (),
        }
    )
    assert format_run_sentence(waiting).endswith("committed no fact, and waits for a decision of finance.")


@proves("R-GRAPH-18", part="one full stop")
@pytest.mark.parametrize("more", [{}, {"terminal_code": None}, {"terminal_code": None, "waiting_for": "you"}])
@pytest.mark.parametrize("reason", ["All was verified.", "Nobody knows …", "Nobody knows...", " . "])
def test_a_reason_that_is_a_sentence_ends_it_once(reason: str, more: dict[str, Any]) -> None:
    told = format_run_sentence(REFUND.model_copy(update={"reason": reason, **more}))
    assert told.endswith(".")
    assert not told.endswith(("..", " .", ":."))


def test_a_run_that_never_moved_says_so() -> None:
    bare = SentenceFacts(
        workflow="w",
        tools_allowed=(),
        ceiling=None,
        path=(),
        calls={},
        spent=Decimal(0),
        facts=(),
        status="queued",
    )
    assert format_run_sentence(bare) == (
        "Allowed to use no tool without a cost ceiling, w has not moved yet, "
        "called nothing, spent $0, committed no fact, and is queued."
    )


def test_a_loop_stands_once_with_its_count() -> None:
    assert compress_path(("a", "b", "c", "b", "c", "b", "c", "d")) == ("a", "b, c (3 times)", "d")


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_compressing_loses_no_station(path: list[str]) -> None:
    expanded: list[str] = []
    for part in compress_path(path):
        nodes, _, times = part.partition(" (")
        expanded += nodes.split(", ") * int(times.removesuffix(" times)") or 1)
    assert expanded == path


@given(st.lists(st.text(min_size=1, max_size=5), max_size=300))
def test_the_sentence_is_of_bounded_length(path: list[str]) -> None:
    assert len(format_run_sentence(REFUND.model_copy(update={"path": tuple(path)}))) < 1_500

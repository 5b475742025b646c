"""Which yes can be taken back, and until when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.core.lifecycle import AGREEING, DecisionKind
from approvals.core.policy import RISKS
from approvals.core.undo import LONGEST, MARGIN, effective_at, keeps_back

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEAST: dict[str, Any] = {
    "seconds": 5, "kind": "action", "word": DecisionKind.APPROVE, "risk": "local_write", "quorum": 1
}  # fmt: skip


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("word", DecisionKind)
def test_only_a_yes_to_what_is_least_is_kept_back(word: DecisionKind, risk: str) -> None:
    least = risk in ("read_only", "local_write")
    assert keeps_back(**{**LEAST, "word": word, "risk": risk}) == (word in AGREEING and least)


@pytest.mark.parametrize(
    "other", [{"seconds": 0}, {"quorum": 2}, {"kind": "budget"}, {"risk": "unheard_of"}], ids=str
)
def test_nothing_else_is_kept_back(other: dict[str, Any]) -> None:
    assert keeps_back(**LEAST)
    assert not keeps_back(**{**LEAST, **other})


@pytest.mark.parametrize("seconds", range(1, LONGEST + 1))
def test_no_yes_is_lost_to_its_own_delay(seconds: int) -> None:
    then = NOON + timedelta(seconds=seconds)
    assert effective_at(NOON, seconds, then + MARGIN) == then
    assert effective_at(NOON, seconds, then + MARGIN - timedelta(microseconds=1)) is None

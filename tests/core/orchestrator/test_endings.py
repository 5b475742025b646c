"""The table of terminal codes: whole, and every row as it is agreed (R-GRAPH-15)."""

import pytest

from orchestrator.core.common.run_status import (
    ENDINGS,
    TERMINAL_STATUSES,
    Status,
    TerminalClass,
    TerminalCode,
    final_status,
)
from tests.proves import proves

AGREED = """
SUCCESS            COMMIT completed
PARTIAL_SUCCESS    COMMIT completed
IMPOSSIBLE         FAIL   failed
MISSING_INFO       FAIL   failed
AMBIGUOUS_INTENT   FAIL   failed
CONFIRM_REQUIRED   FAIL   rejected
REVIEW_REQUIRED    FAIL   rejected
BUDGET_EXHAUSTED   FAIL   failed
TIMEOUT            FAIL   failed
VALIDATION_FAIL    FAIL   failed
LOW_CONFIDENCE     FAIL   failed
SOURCE_CONFLICT    FAIL   failed
REPEATED_FAILURE   FAIL   failed
PERMISSION_DENIED  FAIL   failed
UNSAFE_DETECTION   FAIL   failed
UNAVAILABLE_DEP    FAIL   failed
USER_CANCEL        HALT   cancelled
"""


@proves("R-GRAPH-15", part="the table")
def test_every_code_has_its_class_and_its_status() -> None:
    rows = [f"{code:<18} {row.terminal_class:<6} {row.status}" for code, row in ENDINGS.items()]
    assert rows == AGREED.split("\n")[1:-1]
    assert list(ENDINGS) == list(TerminalCode)


@proves("R-GRAPH-16", part="a next step for every end")
@pytest.mark.parametrize("code", TerminalCode)
def test_every_code_says_what_it_means_and_what_to_do_next(code: TerminalCode) -> None:
    row = ENDINGS[code]
    assert row.meaning.endswith(".")
    assert row.next_safe_action.endswith(".")
    assert row.status in TERMINAL_STATUSES


@proves("R-GRAPH-15", part="expiry")
@pytest.mark.parametrize("code", TerminalCode)
def test_only_a_failure_can_be_an_expiry(code: TerminalCode) -> None:
    row = ENDINGS[code]
    failed = row.terminal_class is TerminalClass.FAIL
    assert final_status(code, expired=False) is row.status
    assert final_status(code, expired=True) is (Status.EXPIRED if failed else row.status)

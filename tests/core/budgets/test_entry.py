"""An entry's digest covers every column, and its marks name the one that was altered."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from budgets.core.amounts import NOTHING, Vector
from budgets.core.entry import (
    COLUMNS,
    EntryRow,
    amounts_text,
    detect_altered_columns,
    read_amounts,
    seal_entry,
)
from budgets.core.posting import Cause, Draft
from tests.proves import proves

ROW = EntryRow(
    id=UUID(int=1),
    tenant_id=UUID(int=2),
    run_id=UUID(int=3),
    account_id=UUID(int=3),
    month_id=None,
    tranche_id=None,
    effect_id="e",
    cause="reserve",
    amounts="{}",
    unknown=False,
    price_version="",
    at=datetime(2026, 11, 21, tzinfo=UTC),
)
OTHER: dict[str, Any] = {
    "id": UUID(int=9), "tenant_id": UUID(int=9), "run_id": None, "account_id": UUID(int=9),
    "month_id": UUID(int=9), "tranche_id": UUID(int=9), "effect_id": None, "cause": "settle",
    "amounts": '{"used":{"steps":"1"}}',
    "unknown": True, "price_version": "2", "at": datetime(2026, 11, 22, tzinfo=UTC),
}  # fmt: skip


def test_an_intact_entry_has_no_fault() -> None:
    assert detect_altered_columns(ROW, *seal_entry(ROW)) == ()


@proves("R-TRACE-3", part="entry columns")
@pytest.mark.parametrize("column", COLUMNS)
def test_an_altered_column_is_named(column: str) -> None:
    assert detect_altered_columns(ROW._replace(**{column: OTHER[column]}), *seal_entry(ROW)) == (column,)


def test_an_altered_digest_or_mark_is_named_too() -> None:
    digest, marks = seal_entry(ROW)
    assert detect_altered_columns(ROW, "0" * 64, marks) == ("digest",)
    assert detect_altered_columns(ROW, digest, bytes(len(marks))) == ("marks",)


def test_amounts_read_as_they_were_written() -> None:
    draft = Draft(cause=Cause.SETTLE, effect_id="e", used=Vector.of({"steps": Decimal(2)}))
    assert read_amounts(amounts_text(draft)) == (draft.used, NOTHING, NOTHING)

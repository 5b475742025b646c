"""A ledger entry as a value: what its digest covers, and which column betrays an alteration (R-BUDGET-3)."""

from datetime import datetime
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID
from zlib import crc32

import orjson

from budgets.core.amounts import NOTHING, Vector
from budgets.core.posting import Draft
from traces.core.canonical import canonical_typed, compute_digest, format_canonical_time, text_of

MARK_BYTES: Final = 2


class EntryRow(NamedTuple):
    """Every column of an entry but its digest and marks.

    `amounts` is the canonical text of {"used", "reserved", "limit"} → dimension → delta. They hold for the
    lines of `account_id` and, where there is one, of `month_id`. `tranche_id` names the tranche a cost was
    drawn on or that was changed.
    """

    id: UUID
    tenant_id: UUID
    run_id: UUID | None
    account_id: UUID
    month_id: UUID | None
    tranche_id: UUID | None
    effect_id: str | None
    cause: str
    amounts: str
    unknown: bool
    price_version: str
    at: datetime


COLUMNS: Final = EntryRow._fields
_MARKS: Final = Struct(f">{len(COLUMNS)}H")


def seal_entry(row: EntryRow) -> tuple[str, bytes]:
    """The digest (hex) of every column by its name, and the marks: two bytes a column, in the columns' order.

    The digest is the proof; the marks only tell an altered column from the others.
    """
    values = [_canonical_value(value) for value in row]
    marks = _MARKS.pack(*[crc32(repr(value).encode()) & 0xFFFF for value in values])
    return compute_digest("entry", canonical_typed(dict(zip(COLUMNS, values, strict=True)))), marks


def _canonical_value(value: UUID | datetime | str | bool | None) -> str | bool | None:
    if value is None or isinstance(value, str | bool):
        return value
    return text_of(value) if isinstance(value, UUID) else format_canonical_time(value)


def detect_altered_columns(row: EntryRow, stored_digest: str, stored_marks: bytes) -> tuple[str, ...]:
    """The columns that are not what was written; empty for an intact entry."""
    true_digest, true_marks = seal_entry(row)
    if true_marks != stored_marks:
        if true_digest == stored_digest:
            return ("marks",)
        return tuple(
            name
            for number, name in enumerate(COLUMNS)
            if _extract_mark(true_marks, number) != _extract_mark(stored_marks, number)
        )
    return () if true_digest == stored_digest else ("digest",)


def amounts_text(draft: Draft) -> str:
    """The canonical text of a draft's deltas; parts without one are left out."""
    parts = {"limit": draft.limit, "reserved": draft.reserved, "used": draft.used}
    return canonical_typed({name: part.canonical() for name, part in parts.items() if part}).decode()


def read_amounts(text: str) -> tuple[Vector, Vector, Vector]:
    """The (used, reserved, limit) deltas of an entry's text."""
    parts = orjson.loads(text)
    used, reserved, limit = (Vector.read(parts[name]) if name in parts else NOTHING for name in _PARTS)
    return used, reserved, limit


_PARTS: Final = ("used", "reserved", "limit")


def _extract_mark(all_marks: bytes, number: int) -> bytes:
    return all_marks[number * MARK_BYTES : (number + 1) * MARK_BYTES]

"""A decision's digest covers every column of its row."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from approvals.core.digests import COLUMNS, decision_digest
from approvals.models import Decision
from tests.proves import proves

ROW: dict[str, object] = {
    "id": UUID(int=1),
    "tenant_id": UUID(int=2),
    "request_id": UUID(int=3),
    "principal": UUID(int=4),
    "owner": UUID(int=5),
    "role": "reviewer",
    "kind": "edit",
    "reason": "",
    "arguments": b"{}",
    "answer": None,
    "packet_digest": "a" * 64,
    "previous": "a" * 64,
    "at": datetime(2026, 11, 21, tzinfo=UTC),
    "quorum": 2,
}
BEFORE_THE_QUORUM = "be919d0239588ff51f2437fac27f3c24eda6d3b9b26ec70d8191a7745e2def05"


def test_the_columns_are_those_of_the_table() -> None:
    assert {*COLUMNS, "digest"} == {field.attname for field in Decision._meta.concrete_fields}


@proves("R-APPR-15", part="bound")
@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_moves_the_digest(column: str) -> None:
    other: object = b"other" if column in {"arguments", "answer"} else f"other {column}"
    assert decision_digest(ROW | {column: other}) != decision_digest(ROW)


def test_bytes_read_back_as_a_view_have_the_same_digest() -> None:
    assert decision_digest(ROW | {"arguments": memoryview(b"{}")}) == decision_digest(ROW)


def test_a_word_from_before_the_quorum_was_kept_has_the_digest_it_had() -> None:
    assert decision_digest(ROW | {"quorum": None}) == BEFORE_THE_QUORUM

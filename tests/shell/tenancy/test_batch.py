"""Many rows for many tables in one statement: what is sent, in which order, and what a failure leaves."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection

from tenancy.db.statement_batch import Batch, RowRefused
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.factories.plans import with_plans

ONE, OTHER = "INSERT INTO pg_temp.one (a, b) VALUES ", "INSERT INTO pg_temp.other (a, b) VALUES "


@pytest.fixture
def cursor(house: House) -> Iterator["psycopg.Cursor[tuple[int, str]]"]:
    with tenant_transaction(house.tenant.id):
        with connection.cursor() as plain:
            for name in ("one", "other"):
                plain.execute(f"CREATE TEMP TABLE {name} (a int PRIMARY KEY, b text) ON COMMIT DROP")
        yield raw_cursor()


def rows(cursor: "psycopg.Cursor[tuple[int, str]]", table: str) -> list[tuple[int, str]]:
    """What stands in a table."""
    return cursor.execute(f"SELECT a, b FROM pg_temp.{table} ORDER BY a".encode()).fetchall()


def test_all_parts_are_written_together(cursor: "psycopg.Cursor[tuple[int, str]]") -> None:
    with Batch(cursor) as batch:
        batch.insert(ONE, [(1, "x"), (2, "%s")])
        batch.insert(OTHER, [("p",), ("q",)][:1], shared=(7,))
        batch.insert(OTHER, [], shared=(9,))
        batch.add("UPDATE pg_temp.one SET b = %s WHERE a = %s", ["later", 99])
    assert rows(cursor, "one") == [(1, "x"), (2, "%s")]
    assert rows(cursor, "other") == [(7, "p")]


def test_what_is_there_may_stay(cursor: "psycopg.Cursor[tuple[int, str]]") -> None:
    for word in ("first", "second"):
        with Batch(cursor) as batch:
            batch.insert(ONE, [(1, word)], " ON CONFLICT DO NOTHING")
    assert rows(cursor, "one") == [(1, "first")]


def test_the_same_shape_is_one_statement_whatever_it_holds(
    cursor: "psycopg.Cursor[tuple[int, str]]",
) -> None:
    for start in (0, 10, 20):
        with Batch(cursor) as batch:
            batch.insert(ONE, [(start + n, str(n)) for n in range(3)])
    assert len(rows(cursor, "one")) == 9


def test_more_than_one_statement_takes_is_sent_in_several(
    cursor: "psycopg.Cursor[tuple[int, str]]",
) -> None:
    with Batch(cursor) as batch:
        for start in range(0, 45_000, 15_000):
            batch.insert(ONE, [(start + n, "") for n in range(15_000)])
    assert len(rows(cursor, "one")) == 45_000


def test_nothing_is_sent_for_nothing_or_after_a_failure(cursor: "psycopg.Cursor[tuple[int, str]]") -> None:
    def failing() -> None:
        with Batch(cursor) as batch:
            batch.insert(ONE, [(1, "x")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    with Batch(cursor):
        pass
    assert rows(cursor, "one") == []


@pytest.fixture
def kept(house: House, superuser: "psycopg.Connection[tuple[int, str]]") -> Iterator[str]:
    """A table that outlives a transaction, with one row."""
    name = f"batch_{house.tenant.slug.replace('-', '_')}"
    for words in (
        f"CREATE TABLE {name} (a int PRIMARY KEY, b text)",
        f"INSERT INTO {name} VALUES (1, 'one')",
        f"GRANT SELECT, INSERT, UPDATE ON {name} TO interlock_app",
    ):
        superuser.execute(words.encode())
    yield name
    superuser.execute(f"DROP TABLE {name}".encode())


def land(house: House, table: str, *, wanted: int, question: bytes = b"SELECT $1::int") -> Any:
    """Change the row 1 and add another, in one trip with the commit; what the question answers."""
    return with_plans(lambda: landed(house, table, wanted, question))


def landed(house: House, table: str, wanted: int, question: bytes) -> Any:
    """One try of it."""
    with tenant_transaction(house.tenant.id):
        batch = Batch(raw_cursor())
        batch.touch(f"UPDATE {table} SET b = %s WHERE a = %s RETURNING a::text AS key", ["uno", 1], wanted)
        batch.insert(f"INSERT INTO {table} (a, b) VALUES ", [(2, "two")])
        return batch.land(question, (7,))


def all_of(superuser: "psycopg.Connection[tuple[int, str]]", table: str) -> list[tuple[int, str]]:
    """What stands in the table, seen from another connection."""
    return superuser.execute(f"SELECT a, b FROM {table} ORDER BY a".encode()).fetchall()


def test_what_lands_is_committed_and_the_question_is_answered_after_it(
    house: House, superuser: "psycopg.Connection[tuple[int, str]]", kept: str
) -> None:
    counting = f"SELECT (SELECT count(*) FROM {kept}), $1::int".encode()
    assert land(house, kept, wanted=1, question=counting) == [(2, 7)]
    assert all_of(superuser, kept) == [(1, "uno"), (2, "two")]


def test_a_row_that_did_not_take_its_change_undoes_all_of_it(
    house: House, superuser: "psycopg.Connection[tuple[int, str]]", kept: str
) -> None:
    with pytest.raises(RowRefused):
        land(house, kept, wanted=2)
    assert all_of(superuser, kept) == [(1, "one")]
    assert land(house, kept, wanted=1) == [(7,)]


def test_a_question_that_fails_leaves_the_commit_standing(
    house: House, superuser: "psycopg.Connection[tuple[int, str]]", kept: str
) -> None:
    assert land(house, kept, wanted=1, question=b"SELECT 1 / ($1::int - 7)") is None
    assert all_of(superuser, kept) == [(1, "uno"), (2, "two")]


def test_an_error_of_the_batch_is_an_error_and_commits_nothing(
    house: House, superuser: "psycopg.Connection[tuple[int, str]]", kept: str
) -> None:
    superuser.execute(f"INSERT INTO {kept} VALUES (2, 'there')".encode())
    with pytest.raises(IntegrityError):
        land(house, kept, wanted=1)
    assert all_of(superuser, kept) == [(1, "one"), (2, "there")]

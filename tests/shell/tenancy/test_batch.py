"""Many rows for many tables in one statement: what is sent, in which order, and what a failure leaves."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from tenancy.batch import Batch
from tenancy.context import raw_cursor, tenant
from tests.conftest import House

ONE, OTHER = "INSERT INTO pg_temp.one (a, b) VALUES ", "INSERT INTO pg_temp.other (a, b) VALUES "


@pytest.fixture
def cursor(house: House) -> Iterator["psycopg.Cursor[tuple[int, str]]"]:
    with tenant(house.tenant.id):
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

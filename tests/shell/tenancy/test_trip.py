"""Several statements in one trip: what comes back, what stops it, and plans that psycopg gave up."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, connection

from tenancy.db.pipeline import BEGIN, COMMIT, GONE, Statement, execute_pipeline
from tenancy.db.tenant_context import raw_cursor, tenant_asking, tenant_reading, tenant_transaction
from tests.conftest import House

ADD = Statement(b"SELECT $1::int + 1, $2::text", (1, "a"), prepared=True)
PLAIN = Statement(b"SELECT 7")
WRONG = Statement(b"SELECT 1 / $1::int", (0,), prepared=True)


@pytest.fixture
def raw(superuser: "psycopg.Connection[tuple[object, ...]]") -> Iterator["psycopg.Connection[Any]"]:
    """A connection of its own, on which psycopg keeps no plans."""
    superuser.autocommit = False
    yield superuser
    superuser.rollback()


def test_each_statement_answers_in_order(raw: "psycopg.Connection[Any]") -> None:
    for _ in range(3):
        assert execute_pipeline(raw, (BEGIN, ADD, PLAIN, COMMIT)) == ([[], [(2, "a")], [(7,)], []], None)


def test_nothing_after_a_failure_is_done_and_the_connection_serves_on(
    raw: "psycopg.Connection[Any]",
) -> None:
    answers, error = execute_pipeline(raw, (BEGIN, PLAIN, WRONG, ADD, COMMIT))
    assert answers == [[], [(7,)]]
    assert isinstance(error, psycopg.errors.DivisionByZero)
    raw.rollback()
    assert execute_pipeline(raw, (ADD,)) == ([[(2, "a")]], None)


def test_plans_that_were_given_up_are_said_once_and_made_again(
    raw: "psycopg.Connection[Any]",
) -> None:
    execute_pipeline(raw, (ADD,))
    raw.execute("DEALLOCATE ALL")
    _, error = execute_pipeline(raw, (ADD,))
    assert error is not None
    assert error.sqlstate == GONE
    raw.rollback()
    assert execute_pipeline(raw, (ADD,)) == ([[(2, "a")]], None)


def test_a_tenants_reading_makes_its_plans_again(house: House) -> None:
    asking = "SELECT %(one)s::int, current_setting('interlock.tenant')"
    for _ in range(2):
        with tenant_reading(house.tenant.id, asking, {"one": 1}) as rows:
            assert rows == [(1, str(house.tenant.id))]
            raw_cursor().execute("DEALLOCATE ALL")


def test_a_connection_lost_on_the_way_is_an_error_and_is_not_used_again(
    house: House, superuser: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    def cut_off() -> None:
        with tenant_transaction(house.tenant.id):
            at = raw_cursor().connection
            superuser.execute("SELECT pg_terminate_backend(%s)", (at.info.backend_pid,))
            execute_pipeline(at, (PLAIN,))

    with pytest.raises(OperationalError):
        cut_off()
    with tenant_reading(house.tenant.id, "SELECT %(one)s::int", {"one": 1}) as rows:
        assert rows == [(1,)]


ASKED = ("SELECT %(one)s::int, current_setting('interlock.tenant')", {"one": 1})


def test_a_whole_transaction_is_one_trip_and_makes_its_plans_again(house: House) -> None:
    for _ in range(2):
        answers = tenant_asking(house.tenant.id, ASKED, ("SELECT %(two)s::text", {"two": "b"}))
        assert answers == [[(1, str(house.tenant.id))], [("b",)]]
        connection.connection.execute("DEALLOCATE ALL")


def test_a_statement_that_fails_undoes_the_transaction_and_the_connection_serves_on(house: House) -> None:
    change = (
        "UPDATE tenancy_tenant SET name = 'other' WHERE id = %(id)s RETURNING 1",
        {"id": house.tenant.id},
    )
    with pytest.raises(DataError):
        tenant_asking(house.tenant.id, change, ("SELECT 1 / %(none)s::int", {"none": 0}))
    asked = ("SELECT name FROM tenancy_tenant WHERE id = %(id)s", {"id": house.tenant.id})
    assert tenant_asking(house.tenant.id, asked) == [[(house.tenant.name,)]]


def test_a_whole_transaction_is_none_within_another(house: House) -> None:
    with tenant_transaction(house.tenant.id), pytest.raises(RuntimeError):
        tenant_asking(house.tenant.id, ASKED)


def test_a_value_that_cannot_be_written_costs_no_connection(raw: "psycopg.Connection[Any]") -> None:
    with pytest.raises(psycopg.DataError):
        execute_pipeline(raw, (ADD, Statement(b"SELECT $1::text", ("a\0b",))))
    assert execute_pipeline(raw, (ADD,)) == ([[(2, "a")]], None)

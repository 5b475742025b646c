"""sql.query and sql.write against a real PostgreSQL: what a query cannot do, and what a change takes back."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pytest_django import Settings

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.domain.run_events import ToolAnswered, ToolFailed
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.tools.actions.destinations import set_databases
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.gateways.registry import shipped_tools
from tenancy.core.errors import InvalidInput
from tenancy.secret_store import keep_secret
from tests.conftest import House
from tests.doors.gateways.effects import Told
from tests.doors.gateways.houses import use_in_house
from tests.doubles.forward import Forward
from tests.proves import proves
from tests.servers import TestServers

ROLES = ("suite_company_reader", "suite_company_writer", "suite_company_mighty")
# Those that may do too much by what they are members of, or in one column.
VEILED = {
    "suite_company_maker": "CREATEROLE", "suite_company_heir": "IN ROLE suite_company_maker",
    "suite_company_column": "", "suite_company_both": "NOINHERIT IN ROLE suite_company_writer",
}  # fmt: skip
TABLES = """
CREATE SCHEMA IF NOT EXISTS company;
CREATE TABLE IF NOT EXISTS company.orders (
  id text PRIMARY KEY, total numeric NOT NULL CHECK (total >= 0), at timestamptz, note text);
CREATE OR REPLACE FUNCTION company.sneak() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN INSERT INTO company.orders VALUES ('sneaked', 1); RETURN 1; END $$;
GRANT USAGE ON SCHEMA company TO suite_company_reader, suite_company_writer;
GRANT SELECT ON company.orders TO suite_company_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON company.orders TO suite_company_writer;
GRANT pg_read_server_files TO suite_company_mighty;
GRANT UPDATE (note) ON company.orders TO suite_company_column;
CREATE TABLE IF NOT EXISTS company.bills (id text PRIMARY KEY, total numeric, note text);
CREATE TABLE IF NOT EXISTS company.items (
  bill text REFERENCES company.bills ON DELETE CASCADE, n int, UNIQUE (bill, n));
CREATE TABLE IF NOT EXISTS company.told (id text);
CREATE TABLE IF NOT EXISTS company.apart (id text, total numeric) PARTITION BY RANGE (total);
CREATE TABLE IF NOT EXISTS company.apart_low PARTITION OF company.apart FOR VALUES FROM (0) TO (10);
CREATE TABLE IF NOT EXISTS company.apart_high PARTITION OF company.apart FOR VALUES FROM (10) TO (99);
CREATE OR REPLACE FUNCTION company.tell() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN INSERT INTO company.told VALUES (NEW.id); RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER tells AFTER UPDATE ON company.bills FOR EACH ROW
  WHEN (NEW.note = 'tell') EXECUTE FUNCTION company.tell();
DROP TRIGGER IF EXISTS tells_late ON company.bills;
CREATE CONSTRAINT TRIGGER tells_late AFTER UPDATE ON company.bills DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.note = 'tell late') EXECUTE FUNCTION company.tell();
CREATE OR REPLACE FUNCTION company.wipe() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN TRUNCATE company.told; RETURN 'x'; END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON company.bills, company.items, company.told, company.apart
  TO suite_company_writer;
"""


@pytest.fixture(scope="module")
def company(servers: TestServers) -> TestServers:
    """A schema of orders, a role that reads it, one that writes it, and one that may do too much."""
    with servers.superuser() as connection:
        for role, more in {**dict.fromkeys(ROLES, ""), **VEILED}.items():
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'suite' {}")
                connection.execute(made.format(sql.Identifier(role), sql.SQL(more)))
        connection.execute(TABLES)
    return servers


class Asker:
    """A house whose operator names the database."""

    def __init__(self, loop: EffectLoop, house: House, servers: TestServers, settings: Settings) -> None:
        self.loop, self.id, self.servers, self.settings = loop, house.tenant.id, servers, settings
        self.name(*ROLES[:2])
        self.has(("A-1", "129.90"), ("A-2", "5"))

    def name(self, reader: str, writer: str) -> None:
        """The roles that the operator's settings name."""
        at = f"@/{self.servers.database}?host={self.servers.postgres.sockets}"
        roles = {"reader": reader, "writer": writer}
        urls = {name: f"postgresql://{role}:suite{at}" for name, role in roles.items()}
        self.settings.INTERLOCK_DATABASES = {"company": urls}

    def has(self, *orders: tuple[str, str]) -> None:
        """Exactly these orders."""
        with self.servers.superuser() as connection:
            connection.execute("TRUNCATE company.orders")
            for order in orders:
                connection.execute("INSERT INTO company.orders (id, total) VALUES (%s, %s)", order)

    def orders(self) -> list[tuple[Any, ...]]:
        """What stands in the table."""
        with self.servers.superuser() as connection:
            return connection.execute("SELECT id, total::text FROM company.orders ORDER BY id").fetchall()

    def ask(
        self, query: str, *parameters: Any, limit: int = 100, source: str = "company", **more: Any
    ) -> Told:
        """sql.query."""
        given = {"source": source, "query": query, "parameters": list(parameters), "limit": limit}
        return use_in_house(self.loop, self.id, "sql.query", given, **more)

    def rows(self, query: str, *parameters: Any, **more: Any) -> list[dict[str, Any]]:
        """The rows a query brings."""
        told = self.ask(query, *parameters, **more)
        assert isinstance(told.event, ToolAnswered), told.bodies
        result = told.document(told.event.observation)
        assert validate_against_schema(shipped_tools()["sql.query"].spec.output_schema, result) is None
        found: list[dict[str, Any]] = result["rows"]
        return found

    def write(self, statement: str, *parameters: Any, rows: int = 1, **more: Any) -> Told:
        """sql.write."""
        given = {
            "source": "company", "statement": statement, "parameters": list(parameters),
            "expected_rows": rows,
        }  # fmt: skip
        return use_in_house(self.loop, self.id, "sql.write", given, **more)


@pytest.fixture
def asker(loop: EffectLoop, house: House, company: TestServers, settings: Settings) -> Asker:
    """The house."""
    return Asker(loop, house, company, settings)


@proves("R-TOOL-19", part="SQL query")
def test_a_query_brings_rows_exactly(asker: Asker) -> None:
    query = "SELECT id, total, 9007199254740993 AS big, true AS yes, NULL AS none FROM company.orders"
    assert asker.rows(f"{query} WHERE id = $1;", "A-1") == [
        {"id": "A-1", "total": "129.90", "big": "9007199254740993", "yes": True, "none": None}
    ]
    assert asker.rows("WITH x AS (SELECT $1::int + 1 AS n) SELECT n FROM x -- the end", 41) == [{"n": 42}]
    assert asker.rows("VALUES (1), (2)") == [{"column1": 1}, {"column1": 2}]


MORE_THAN_READING = (
        "INSERT INTO company.orders VALUES ('x', 1)", "DELETE FROM company.orders RETURNING id",
        "WITH x AS (DELETE FROM company.orders RETURNING id) SELECT * FROM x",
        "SELECT 1) AS t; DELETE FROM company.orders; SELECT (1", "SELECT 1; DELETE FROM company.orders",
        "SELECT 1) AS t; COMMIT; BEGIN READ WRITE; DELETE FROM company.orders WHERE (true",
        "SELECT company.sneak()", "SELECT nextval('company.n')", "SELECT * FROM company.orders FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT query_to_xml('DELETE FROM company.orders', true, false, '')",
        "SELECT set_config('role', 'interlock_owner', false)", "SET ROLE interlock_owner",
        "COPY company.orders TO PROGRAM 'cat'", "COPY company.orders TO STDOUT", "DO $$ BEGIN END $$",
        "SELECT pg_read_file('/etc/passwd')", "SELECT pg_ls_dir('/')", "SELECT lo_import('/etc/passwd')",
        "SELECT lo_creat(-1)", "SELECT dblink_connect('host=127.0.0.1')", "EXPLAIN ANALYZE SELECT 1",
        "CREATE TABLE company.t (n int)", "CREATE TEMP TABLE t (n int)", "SELECT 1 INTO company.t",
        "TABLE traces_event", "SELECT * FROM tenancy_tenant", "SELECT rolpassword FROM pg_authid", " ",
)  # fmt: skip


@proves("R-TOOL-19", part="a query cannot write")
def test_a_query_that_would_do_more_than_read_is_refused(asker: Asker) -> None:
    for query in MORE_THAN_READING:
        told = asker.ask(query)
        assert isinstance(told.event, ToolFailed), query
        assert told.event.error == "refused", query
    assert asker.orders() == [("A-1", "129.90"), ("A-2", "5")]


@proves("R-TOOL-19", part="the role itself only reads")
@pytest.mark.parametrize("role", [ROLES[1], ROLES[2]])
def test_a_reader_that_may_do_more_is_not_used(asker: Asker, role: str) -> None:
    asker.name(role, role)
    told = asker.ask("SELECT 1")
    assert (told.event.error, "role" in told.text(told.event.detail)) == ("refused", True)
    assert isinstance(asker.write("DELETE FROM company.orders WHERE id = 'A-1'").event, ToolAnswered) is (
        role == ROLES[1]
    )


@proves("R-TOOL-19", part="the role itself only reads")
@pytest.mark.parametrize(
    ("role", "why"), list(zip(list(VEILED)[1:], ("past the tables", "may write", "may write"), strict=True))
)
def test_a_reader_that_may_become_more_or_write_one_column_is_not_used(
    asker: Asker, role: str, why: str
) -> None:
    asker.name(role, role)
    assert why in _why(asker.ask("SELECT 1"))


@proves("R-TOOL-19", part="statement timeout")
def test_a_long_query_is_cut(asker: Asker) -> None:
    told = asker.ask("SELECT count(*) FROM generate_series(1, 1000000000000)", timeout_ms=1_000)
    assert told.event.error == "timeout"
    assert asker.ask("SELECT pg_sleep(20)", timeout_ms=800).event.error == "timeout"


@proves("R-TOOL-19", part="statement timeout")
def test_a_query_that_takes_its_time_bound_off_has_it_again_at_the_next_rows(asker: Asker) -> None:
    """The first hundred rows lift the bound, those after them tell what holds."""
    free = "CASE n WHEN 1 THEN set_config('statement_timeout', '0', false) END AS free"
    now = "CASE n WHEN 101 THEN current_setting('statement_timeout') END AS now"
    rows = asker.rows(f"SELECT {free}, {now} FROM generate_series(1, 101) n", limit=200)
    assert (rows[0]["free"], rows[100]["now"] in (None, "0")) == ("0", False)


@proves("R-TOOL-19", part="row cap")
def test_a_million_rows_are_capped_without_being_fetched(asker: Asker) -> None:
    told = asker.ask("SELECT n FROM generate_series(1, 1000000) n", limit=250)
    result = told.document(told.event.observation)
    assert (result["count"], result["cut"], result["rows"][-1]) == (250, True, {"n": 250})


@pytest.mark.parametrize(("count", "cut"), [(100, False), (101, True), (0, False)])
def test_a_result_of_just_the_limit_is_whole(asker: Asker, count: int, *, cut: bool) -> None:
    told = asker.ask("SELECT n FROM generate_series(1, $1::int) n", count)
    result = told.document(told.event.observation)
    assert (result["count"], result["cut"]) == (min(count, 100), cut)


def test_bytes_are_capped_and_a_huge_row_is_left_out(asker: Asker) -> None:
    told = asker.ask(
        "SELECT repeat('x', CASE n WHEN 2 THEN 5000000 ELSE 9000 END) FROM generate_series(1, 90) n"
    )
    result = told.document(told.event.observation)
    assert (result["cut"], result["too_large"]) == (True, 1)
    assert 10 < result["count"] < 25


@proves("R-TOOL-19", part="SQL write, row counts verified")
def test_a_change_is_made_when_it_changes_as_many_rows_as_were_said(asker: Asker) -> None:
    told = asker.write("UPDATE company.orders SET total = $1 WHERE id = $2", "7.50", "A-2")
    assert told.document(told.event.observation) == {"source": "company", "rows": 1}
    told = asker.write("WITH x AS (SELECT 'A-3') INSERT INTO company.orders SELECT * , 1 FROM x;")
    assert isinstance(told.event, ToolAnswered)
    assert asker.orders() == [("A-1", "129.90"), ("A-2", "7.50"), ("A-3", "1")]


NOT_AS_SAID = (
        ("UPDATE company.orders SET total = 0", 1), ("DELETE FROM company.orders WHERE id = 'none'", 1),
        ("DELETE FROM company.orders", 1), ("WITH x AS (SELECT 1) SELECT * FROM x", 1),
        ("DELETE FROM company.orders; COMMIT; SELECT 1", 2), ("TRUNCATE company.orders", 2),
        ("DROP TABLE company.orders", 1), ("COPY company.orders FROM PROGRAM 'x'", 1), ("COMMIT", 1),
        ("/* DELETE */ GRANT ALL ON company.orders TO PUBLIC", 1),
        ("UPDATE company.orders SET total = -1", 2),
)  # fmt: skip


@proves("R-TOOL-19", part="another count is taken back")
def test_a_change_that_is_not_what_was_said_is_not_made(asker: Asker) -> None:
    for statement, rows in NOT_AS_SAID:
        told = asker.write(statement, rows=rows)
        assert (told.event.error, told.event.sent) == ("refused", False), statement
    assert asker.orders() == [("A-1", "129.90"), ("A-2", "5")]


# Each says how many rows its last part changes, and would change more.
MORE_THAN_SAID = (
        ("WITH d AS (DELETE FROM company.items) UPDATE company.bills SET total = 1 WHERE id = 'B-1'", 1),
        ("WITH d AS (DELETE FROM company.items RETURNING 1) UPDATE company.bills SET total = 1", 2),
        ("DELETE FROM company.bills WHERE id = 'B-1'", 1),
        ("UPDATE company.bills SET note = 'tell' WHERE id = 'B-1'", 1),
        ("UPDATE company.bills SET note = 'tell late' WHERE id = 'B-1'", 1),
        ("UPDATE company.bills SET note = company.sneak()::text WHERE id = 'B-1'", 1),
        ("UPDATE company.bills SET note = company.wipe() WHERE id = 'B-1'", 1),
        ("UPDATE company.bills SET note = lo_creat(-1)::text WHERE id = 'B-1'", 1),
        ("UPDATE company.apart SET total = 20", 1),
)  # fmt: skip
HAD = """
TRUNCATE company.bills, company.items, company.told, company.apart;
INSERT INTO company.bills VALUES ('B-1', 129.90), ('B-2', 5);
INSERT INTO company.items SELECT 'B-1', n FROM generate_series(1, 3) n;
INSERT INTO company.told VALUES ('old'); INSERT INTO company.apart VALUES ('p', 1);
"""
LEFT = """
SELECT (SELECT string_agg(format('%s %s', id, total), ', ' ORDER BY id) FROM company.bills),
       (SELECT count(*) FROM company.items), (SELECT string_agg(id, ', ') FROM company.told)"""


@proves("R-TOOL-19", part="every row that a change touches is counted")
def test_rows_of_other_tables_triggers_and_cascades_count(asker: Asker) -> None:
    with asker.servers.superuser() as connection:
        connection.execute(HAD)
        for statement, rows in MORE_THAN_SAID:
            told = asker.write(statement, rows=rows)
            assert (told.event.error, told.event.sent) == ("refused", False), statement
            assert "it would change" in _why(told), statement
        assert "1 of company.bills, 3 of company.items" in _why(asker.write(MORE_THAN_SAID[0][0]))
        assert connection.execute(LEFT).fetchone() == ("B-1 129.90, B-2 5", 3, "old")
        for statement, rows in (
            ("UPDATE company.bills SET note = 'tell late' WHERE id = 'B-2'", 2),
            ("DELETE FROM company.bills WHERE id = 'B-1'", 4),
        ):
            assert isinstance(asker.write(statement, rows=rows).event, ToolAnswered), statement
        assert connection.execute(LEFT).fetchone() == ("B-2 5", 0, "old, B-2")


@proves("R-TOOL-19", part="every row that a change touches is counted")
def test_where_the_database_does_not_count_nothing_is_changed(asker: Asker) -> None:
    """As its administrator has it: the writer cannot take the counting off."""
    alter = f"ALTER ROLE suite_company_writer IN DATABASE {asker.servers.database}"
    with asker.servers.superuser() as connection:
        connection.execute(sql.SQL(f"{alter} SET track_counts = off"))
        try:
            told = asker.write("DELETE FROM company.orders WHERE id = 'A-1'")
        finally:
            connection.execute(sql.SQL(f"{alter} RESET track_counts"))
    assert "not counted" in _why(told)
    assert asker.orders() == [("A-1", "129.90"), ("A-2", "5")]


def test_a_change_that_is_cut_before_its_commit_was_surely_not_made(asker: Asker) -> None:
    told = asker.write("UPDATE company.orders SET note = pg_sleep(9)::text WHERE id = 'A-1'", timeout_ms=900)
    assert told.event.sent is False


@pytest.mark.parametrize("source", ["other", "company"])
def test_a_database_that_nobody_named_is_not_asked(asker: Asker, source: str) -> None:
    asker.settings.INTERLOCK_DATABASES = {}
    assert asker.ask("SELECT 1", source=source).event.error == "refused"


# -- declared by an admin


@proves("R-TOOL-19", part="a database of a tenant's own")
@proves("Z4", part="a database of a tenant's own")
def test_an_admins_database_is_asked_with_its_sealed_secret_at_its_place_alone(
    asker: Asker, company: TestServers
) -> None:
    forward = Forward(f"{company.postgres.sockets}/.s.PGSQL.5432")
    place = f"127.0.0.1:{forward.port}"
    declared = {
        "name": "books", "host": "127.0.0.1", "port": forward.port, "database": company.database,
        "reader": "books", "tls": "off",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="not acceptable"):
        set_databases(asker.id, (declared,), expected=None, by=None, reason="Ours.")
    set_places(asker.id, (place,), expected=None, by=None, reason="Ours.")
    set_databases(asker.id, (declared,), expected=None, by=None, reason="Ours.")
    set_places(asker.id, (), expected=None, by=None, reason="Not now.")
    assert "there is none" in _why(asker.ask("SELECT 1 AS n", source="books"))
    for origin in (f"postgresql://{place}/other", f"postgresql://{place}/{company.database}"):
        keep_secret(asker.id, "books", "suite_company_reader:suite", origin=origin, by=None)
        told = asker.ask("SELECT 1 AS n", source="books")
        assert told.event.error == "refused"
    assert "no admin has allowed" in _why(told)
    set_places(asker.id, (place,), expected=None, by=None, reason="Ours.")
    assert asker.rows("SELECT 1 AS n", source="books") == [{"n": 1}]
    # Since it is named anew its user is known: a new password is one word, another user is not.
    set_databases(asker.id, (declared,), expected=None, by=None, reason="Ours.")
    assert asker.rows("SELECT 1 AS n", source="books") == [{"n": 1}]
    keep_secret(asker.id, "books", "suite_company_mighty:suite", origin=origin, by=None)
    assert "names another user than was agreed to" in _why(asker.ask("SELECT 1 AS n", source="books"))
    keep_secret(asker.id, "books", "suite_company_reader:other", origin=origin, by=None)
    assert "another user" not in _why(asker.ask("SELECT 1 AS n", source="books"))
    forward.close()


def test_an_operators_database_is_hidden_by_none_of_a_tenant(asker: Asker) -> None:
    mine = {"name": "company", "host": "203.0.114.7", "database": "a", "reader": "a"}
    with pytest.raises(InvalidInput) as refused:
        set_databases(asker.id, (mine,), expected=None, by=None, reason="Mine.")
    assert refused.value.data["errors"][0]["pointer"] == "/databases/0/name"


def test_databases_are_checked_when_they_are_saved(asker: Asker) -> None:
    good = {"name": "a", "host": "203.0.114.7", "database": "a", "reader": "a"}
    bad = (
        {**good, "host": "169.254.169.254"},
        {**good, "host": "0x7f.1"},
        {**good, "reader": "A"},
        good,
        good,
    )
    for wrong in ((bad[0],), (bad[1],), (bad[2],), (bad[3], bad[4]), ({**good, "password": "x"},)):
        with pytest.raises(InvalidInput):
            set_databases(asker.id, wrong, expected=None, by=None, reason="Wrong.")


def _why(told: Told) -> str:
    return told.text(told.event.detail)

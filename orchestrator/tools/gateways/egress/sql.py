"""Queries and changes a PostgreSQL database for a tool (R-TOOL-19).

Each call is one statement, bounded, under a role with minimal privileges.

The database itself keeps a query from writing: a read-only transaction, a cursor that accepts only a query,
and a role without write privileges. None of this depends on parsing the statement.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
from django.conf import settings

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.destinations import Database, another_account
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.tools.gateways.egress.guarded_transport import operators_leave, resolve_allowed_addresses
from orchestrator.tools.gateways.egress.service_client import CONNECT_SECONDS, CallFailed, ToolContext
from orchestrator.tools.gateways.tenant_services import in_house
from orchestrator.tools.queries.destinations import get_allowed_databases
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import SecretUnusable
from tenancy.secret_store import reveal_secret

Role = Literal["reader", "writer"]
Scalar: TypeAlias = str | int | bool | None
MOST_BYTES = 150_000
LARGEST_ROW = 32_000
AT_ONCE = 100
# A cursor accepts a query but no change; a row that is too large is not even transferred.
DECLARE = f"""DECLARE interlock_rows NO SCROLL CURSOR FOR SELECT
  CASE WHEN octet_length(t::text) <= {LARGEST_ROW} THEN to_json(t)::text END FROM"""
SSL = {"verified": "verify-full", "required": "require", "off": "disable"}
CHANGES = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(insert|update|delete|merge|with)\b", re.I | re.S)
TAGS = ("INSERT", "UPDATE", "DELETE", "MERGE")
BIG = 2**53
# Error classes by which a COMMIT reports a rollback; any other error leaves the outcome open.
TAKEN_BACK = ("23", "25", "40", "44", "P0")
# A role that the role may switch to counts as its own, even without inheritance.
MINE = "WITH mine AS (SELECT * FROM pg_roles WHERE pg_has_role(oid, 'MEMBER'))"
# A role with access beyond the tables: server files and programs, other servers, every user's rows.
MIGHTY = """
SELECT EXISTS (SELECT FROM mine WHERE rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication
               OR rolbypassrls OR rolname IN ('pg_read_server_files', 'pg_write_server_files',
               'pg_execute_server_program', 'pg_write_all_data', 'pg_signal_backend', 'pg_checkpoint',
               'pg_signal_autovacuum_worker', 'pg_maintain', 'pg_create_subscription'))
    OR EXISTS (SELECT FROM pg_proc f JOIN pg_depend d ON d.objid = f.oid AND d.deptype = 'e'
               JOIN pg_extension e ON e.oid = d.refobjid CROSS JOIN mine WHERE e.extname IN ('dblink',
               'file_fdw') AND has_function_privilege(mine.oid, f.oid, 'EXECUTE'))
    OR EXISTS (SELECT FROM pg_proc f JOIN pg_language l ON l.oid = f.prolang CROSS JOIN mine
               WHERE NOT l.lanpltrusted AND l.lanname NOT IN ('internal', 'c')
               AND has_function_privilege(mine.oid, f.oid, 'EXECUTE'))"""
WRITES = r"""
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN mine
 WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
   AND n.nspname NOT LIKE 'pg\_t%' AND (has_table_privilege(mine.oid, c.oid, 'DELETE, TRUNCATE')
                                      OR has_any_column_privilege(mine.oid, c.oid, 'INSERT, UPDATE')))
    OR EXISTS (SELECT FROM mine WHERE has_database_privilege(mine.oid, current_database(), 'CREATE'))
    OR EXISTS (SELECT FROM pg_namespace n CROSS JOIN mine WHERE n.nspname NOT LIKE 'pg\_%'
               AND has_schema_privilege(mine.oid, n.oid, 'CREATE'))"""
# The rows that this transaction has touched so far, by table, including those of triggers and cascades.
TOUCHED = r"""
SELECT schemaname || '.' || relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_all_tables
 WHERE schemaname NOT LIKE 'pg\_toast%' AND n_tup_ins + n_tup_upd + n_tup_del > 0"""
# Changes missing from these counts: counting is off, a table truncated or rewritten, a foreign table.
UNCOUNTED = """
SELECT current_setting('track_counts') <> 'on' OR EXISTS (
  SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database LEFT JOIN pg_class c ON c.oid = l.relation
   WHERE l.locktype = 'relation' AND l.pid = pg_backend_pid() AND d.datname = current_database()
     AND (l.mode = 'AccessExclusiveLock' OR l.mode = 'RowExclusiveLock' AND c.relkind = 'f'))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows as JSON values; numbers with a fraction are exact text.

    `cut`: there are more rows. `too_large` counts rows that were left out for their size.
    """

    rows: list[dict[str, Any]]
    cut: bool
    too_large: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConnectionData:
    """The connection data of one role of a database; `socket` is a folder named by the operator."""

    database: Database
    user: str
    password: str
    leave: EgressPolicy
    sslmode: str
    socket: str = ""


async def ask_database(
    context: ToolContext, source: str, query: str, parameters: Sequence[Scalar], most: int
) -> Rows:
    """Run a query and return at most `most` rows.

    Raises: CallFailed.
    """
    async with _open_connection(context, source, "reader") as connection:
        await _execute_statement(connection, "BEGIN READ ONLY")
        await _check_role(connection, "reader")
        bare = query.strip().removesuffix(";")
        await _execute_statement(connection, f"{DECLARE}\n({bare}\n) AS t", parameters)
        return await _fetch_rows(connection, most, _bound_of(context))


async def change_database(
    context: ToolContext, source: str, statement: str, parameters: Sequence[Scalar], expected: int
) -> int:
    """Change exactly `expected` rows, or none.

    Rows of all tables are counted, including those changed by triggers and cascades. After COMMIT only an
    answer shows whether the change was made.

    Raises: CallFailed.
    """
    if CHANGES.match(statement) is None:
        raise _build_refusal("only INSERT, UPDATE, DELETE and MERGE are taken", sent=False)
    async with _open_connection(context, source, "writer") as connection:
        await _execute_statement(connection, "BEGIN")
        await _check_role(connection, "writer")
        before = await _read_touched_counters(connection)
        tag, _ = await _execute_statement(connection, statement.strip().removesuffix(";"), parameters)
        if tag not in TAGS:
            raise _build_refusal("it is no change of rows; nothing was done", sent=False)
        changed = await _count_changed_rows(connection, before, _bound_of(context))
        if (count := changed.total()) != expected:
            where = ", ".join(f"{rows} of {name}" for name, rows in sorted(changed.items())) or "none"
            why = f"it would change {count} rows and not {expected} ({where}); nothing was done"
            raise _build_refusal(why, sent=False)
        context.watch.sent = True
        done, _ = await _execute_statement(connection, "COMMIT")
        if done == "ROLLBACK":
            raise _build_refusal("the database took it back", sent=True)
        if done != "COMMIT":
            raise CallFailed("malformed", sent=True, detail=b"the database did not say that it was done")
        return count


@asynccontextmanager
async def _open_connection(
    context: ToolContext, source: str, role: Role
) -> AsyncIterator["psycopg.AsyncConnection[Any]"]:
    way = await in_house(context, lambda: _resolve_database(context, source, role))
    try:
        addresses = ("",) if way.socket else await resolve_allowed_addresses(way.database.target, way.leave)
    except EgressRefused as error:
        raise _build_refusal(str(error.data["detail"]), sent=False) from None
    try:
        connection = await psycopg.AsyncConnection.connect(
            **_build_connect_parameters(way, addresses[0], _bound_of(context), role), autocommit=True
        )
    except psycopg.Error as error:
        raise _build_failure(error, sent=False) from None
    try:
        yield connection
    except psycopg.Error as error:
        raise _build_failure(error, sent=context.watch.sent) from None
    finally:
        await connection.close()


def _build_connect_parameters(way: _ConnectionData, address: str, bound: int, role: Role) -> dict[str, Any]:
    options = {
        "statement_timeout": bound, "lock_timeout": min(bound, 5_000),
        "idle_in_transaction_session_timeout": bound, "default_transaction_read_only": role == "reader",
        "client_encoding": "UTF8", "timezone": "UTC",
    }  # fmt: skip
    found: dict[str, Any] = {
        "host": way.socket or way.database.target.host, "hostaddr": address, "port": way.database.port,
        "dbname": way.database.database, "user": way.user, "password": way.password,
        "sslmode": way.sslmode, "connect_timeout": int(CONNECT_SECONDS),
        "application_name": f"interlock {role}", "passfile": "/nonexistent", "gssencmode": "disable",
        "options": " ".join(f"-c {name}={str(value).lower()}" for name, value in options.items()),
    }  # fmt: skip
    return found | ({"sslrootcert": "system"} if way.sslmode == "verify-full" else {})


def _bound_of(context: ToolContext) -> int:
    """Return the statement timeout in milliseconds, shorter than our own so that the database reports it."""
    return max(100, int(context.seconds * 1000) - 500)


async def _set_statement_timeout(connection: "psycopg.AsyncConnection[Any]", bound: int) -> None:
    """Set the timeout of the next statement, because the tool's own statement may have removed it."""
    await _execute_statement(connection, f"SET statement_timeout = {bound}")


async def _execute_statement(
    connection: "psycopg.AsyncConnection[Any]", statement: str, parameters: Sequence[Scalar] = ()
) -> tuple[str, int]:
    """Execute a statement and return the command tag and the number of rows."""
    async with psycopg.AsyncRawCursor(connection) as cursor:
        # The binary format forces the extended protocol, which accepts a single statement.
        await cursor.execute(statement.encode(), _encode_parameters(parameters), binary=True)
        return (cursor.statusmessage or "").partition(" ")[0], cursor.rowcount


async def _check_role(connection: "psycopg.AsyncConnection[Any]", role: Role) -> None:
    """Check that a role has no more privileges than its purpose needs.

    Raises: CallFailed.
    """
    async with psycopg.AsyncRawCursor(connection) as cursor:
        await cursor.execute(f"{MINE}{MIGHTY}".encode())
        row = await cursor.fetchone()
        if row is None or row[0]:
            raise _build_refusal(f"the {role} may reach past the tables; name a plain role", sent=False)
        if role == "writer":
            return
        await cursor.execute(f"{MINE}{WRITES}".encode())
        row = await cursor.fetchone()
        if row is None or row[0]:
            raise _build_refusal("the reader may write; name a role that only reads", sent=False)


async def _count_changed_rows(
    connection: "psycopg.AsyncConnection[Any]", before: Counter[str], bound: int
) -> Counter[str]:
    """Return the rows touched since `before`, by table.

    Raises: CallFailed where not all of them are counted.
    """
    await _set_statement_timeout(connection, bound)
    # Run deferred checks now instead of at COMMIT, so that their changes are counted.
    await _execute_statement(connection, "SET CONSTRAINTS ALL IMMEDIATE")
    # The statement may have changed the search path of the names that our queries use.
    await _execute_statement(connection, "SET search_path = pg_catalog, pg_temp")
    await _set_statement_timeout(connection, bound)
    async with psycopg.AsyncRawCursor(connection) as cursor:
        await cursor.execute(UNCOUNTED.encode())
        row = await cursor.fetchone()
    if row is None or row[0]:
        raise _build_refusal("it would change what is not counted by rows; nothing was done", sent=False)
    return await _read_touched_counters(connection) - before


async def _read_touched_counters(connection: "psycopg.AsyncConnection[Any]") -> Counter[str]:
    async with psycopg.AsyncRawCursor(connection) as cursor:
        await cursor.execute(TOUCHED.encode())
        return Counter(dict(await cursor.fetchall()))


async def _fetch_rows(connection: "psycopg.AsyncConnection[Any]", most: int, bound: int) -> Rows:
    rows: list[dict[str, Any]] = []
    size = too_large = 0
    async with psycopg.AsyncRawCursor(connection) as cursor:
        while True:
            left = most + 1 - len(rows) - too_large
            await _set_statement_timeout(connection, bound)
            await cursor.execute(f"FETCH {min(AT_ONCE, left)} FROM interlock_rows".encode())
            found = await cursor.fetchall()
            for (text,) in found:
                if len(rows) + too_large == most or size > MOST_BYTES:
                    return Rows(rows=rows, cut=True, too_large=too_large)
                size += len(text or "")
                too_large += text is None
                rows += [] if text is None else [_parse_row(text)]
            if len(found) < AT_ONCE:
                return Rows(rows=rows, cut=False, too_large=too_large)


def _parse_row(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text, parse_float=str, parse_int=_parse_integer, parse_constant=str)
    return row


def _parse_integer(digits: str) -> int | str:
    number = int(digits) if len(digits) < 20 else BIG
    return number if -BIG < number < BIG else digits


def _encode_parameters(parameters: Sequence[Scalar]) -> list[str | None]:
    """Encode parameters as text of unspecified type, which takes the type of its position."""
    return [value if value is None else _format_parameter(value) for value in parameters]


def _format_parameter(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def no_database(role: Role) -> Callable[[], str]:
    """Build the check that a database with such a role is configured.

    The returned function gives the reason where none is, of the tenant or the operator; call it inside the
    tenant's context.
    """

    def unset() -> str:
        named: Mapping[str, Mapping[Role, str]] = settings.INTERLOCK_DATABASES
        theirs = any(getattr(one, role) for one in get_allowed_databases().databases)
        return "" if theirs or any(role in one for one in named.values()) else f"no database has a {role}"

    return unset


def _resolve_database(context: ToolContext, source: str, role: Role) -> _ConnectionData:
    """Return the connection data of a database. Call it inside the tenant's context.

    Raises: CallFailed.
    """
    named: Mapping[str, Mapping[Role, str]] = settings.INTERLOCK_DATABASES
    found = next((one for one in get_allowed_databases().databases if one.name == source), None)
    if found is None and source in named:
        return _resolve_operator_database(named[source], source, role)
    secret = getattr(found, role) if found is not None else ""
    if found is None or not secret or context.tenant is None:
        known = sorted({*(one.name for one in get_allowed_databases().databases), *named})
        there_are = f"; there are {', '.join(known)}" if known else ""
        raise _build_refusal(f"there is no database {source} with a {role} here{there_are}", sent=False)
    try:
        user, _, password = reveal_secret(context.tenant, secret, found.origin).partition(":")
    except SecretUnusable as unusable:
        raise _build_refusal(str(unusable), sent=False) from None
    if another_account(getattr(found, f"{role}_account"), user):
        raise _build_refusal(
            f"the secret {secret} names another user than was agreed to for {source}; an administrator has "
            "to name the database anew",
            sent=False,
        )
    leave = leave_for(found.target.origin)
    return _ConnectionData(database=found, user=user, password=password, leave=leave, sslmode=SSL[found.tls])


def _resolve_operator_database(given: Mapping[Role, str], source: str, role: Role) -> _ConnectionData:
    """Return a database of the operator's settings; it may be private, because they name it exactly.

    Raises: CallFailed.
    """
    if role not in given:
        raise _build_refusal(f"the database {source} has no {role}", sent=False)
    at = urlsplit(given[role])
    asked = dict(parse_qsl(at.query))
    socket = asked.get("host", "")
    database = Database(
        name=source, host=at.hostname or "localhost", port=at.port or 5432, database=at.path.strip("/"),
        reader="operator", tls="off",
    )  # fmt: skip
    return _ConnectionData(
        database=database, user=unquote(at.username or ""), password=unquote(at.password or ""),
        leave=operators_leave(database.target.origin), sslmode=asked.get("sslmode", "prefer"), socket=socket,
    )  # fmt: skip


def _build_failure(error: psycopg.Error, *, sent: bool) -> CallFailed:
    """Build the failure of a database error, with the database's own message.

    A lost connection leaves open what was sent.
    """
    words = (error.diag.message_primary or type(error).__name__).encode("utf-8", "replace")[:1_000]
    state = error.sqlstate or ""
    if state in ("57014", "25P03", "55P03"):
        return CallFailed("timeout", sent=sent, detail=words)
    if not state or state.startswith(("08", "57P")):
        return CallFailed("crashed" if sent else "unreachable", sent=sent, transient=True, detail=words)
    if sent and (not state.startswith(TAKEN_BACK) or state == "40003"):
        return CallFailed("crashed", sent=True, detail=words)
    return CallFailed("refused", sent=sent, detail=words)


def _build_refusal(why: str, *, sent: bool) -> CallFailed:
    return CallFailed("refused", sent=sent, detail=why.encode("utf-8", "replace"))

"""The one way to a tenant's rows (R-SEC-1): `with tenant(t):` opens a transaction and names the tenant in it.

PostgreSQL's row-level security compares with that name; without one it shows nothing and takes nothing. A
guard on every connection raises before that, so that a forgotten context is an error and not an empty
page.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from uuid import UUID

import psycopg
from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.signals import connection_created
from psycopg.pq import TransactionStatus

from tenancy.core.errors import OtherTenant, OutsideTenant
from tenancy.core.reach import Reach
from tenancy.db.pipeline import BEGIN, COMMIT, GONE, Rows, Statement, execute_pipeline
from tenancy.models import TenantOwned

_CURRENT: ContextVar[UUID | None] = ContextVar("interlock_tenant", default=None)
_REACH: ContextVar[Reach | None] = ContextVar("interlock_reach", default=None)
_PLACE = re.compile(r"%\((\w+)\)s")
_NAME = "SELECT set_config('interlock.tenant', %s, true)"
_HOLD = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_NAMED = _NAME.replace("%s", "$1").encode()
_NARROW = (
    "SELECT set_config('interlock.reach_principal', %s, true), "
    "set_config('interlock.reach_workflows', %s, true)"
)
_NAMED_NARROW = (
    b"SELECT set_config('interlock.tenant', $1, true), set_config('interlock.reach_principal', $2, true), "
    b"set_config('interlock.reach_workflows', $3, true)"
)


@contextmanager
def tenant_transaction(tenant_id: UUID) -> Iterator[None]:
    """A transaction in which `tenant_id`'s rows, and only they, can be seen and written.

    Nested for the same tenant it joins the transaction. Raises OtherTenant when another tenant's is open.
    """
    current = _CURRENT.get()
    if current is not None:
        if current != tenant_id:
            raise OtherTenant
        yield
        return
    with _open_outermost_transaction(tenant_id):
        raw_cursor().execute(_NAME, (str(tenant_id),), prepare=True)
        if (reach := _REACH.get()) is not None:
            _apply_reach(reach)
        yield


@contextmanager
def restrict_to_reach(reach: Reach | None) -> Iterator[None]:
    """Every tenant's transaction that is begun inside sees and writes the runs of this reach alone, and what
    hangs on them (R-SEC-11): PostgreSQL's row-level security holds it. None: the whole tenant."""
    token = _REACH.set(reach)
    try:
        yield
    finally:
        _REACH.reset(token)


def enter_reach(reach: Reach | None) -> None:
    """As `restrict_to_reach`, for the rest of the request: `tenancy.web.middleware.LeaveReach` ends it."""
    _REACH.set(reach)


def current_reach() -> Reach | None:
    """The reach in force, or None for the whole tenant."""
    return _REACH.get()


@contextmanager
def whole_tenant() -> Iterator[None]:
    """Within the open transaction: every run of the tenant, whatever the reach. For what is counted over all
    of them, such as a tenant's rates; nothing that is read here may be answered."""
    reach = _REACH.get()
    if reach is None:
        yield
        return
    _apply_reach(Reach())
    try:
        yield
    finally:
        # A statement that failed has ended the transaction: it takes no other, and nobody reads on.
        if not _has_failed_transaction():
            _apply_reach(reach)


def _apply_reach(reach: Reach) -> None:
    raw_cursor().execute(_NARROW, (reach.whose, reach.likes), prepare=True)


def _has_failed_transaction() -> bool:
    return _get_psycopg_connection().info.transaction_status == TransactionStatus.INERROR


@contextmanager
def tenant_reading(
    tenant_id: UUID, query: str, values: Mapping[str, object]
) -> Iterator[list[tuple[Any, ...]]]:
    """`tenant_transaction`, begun in one trip to the server with a statement whose rows it gives.

    For the hot path (docs/decisions/two-round-trips.md). Raises RuntimeError inside another transaction.
    """
    with _open_outermost_transaction(tenant_id) as at:
        yield _begin_and_execute(at, tenant_id, _build_prepared_statement(query, values))[-1]


def tenant_asking(
    tenant_id: UUID, *asked: tuple[str, Mapping[str, object]], first_lands: bool = False
) -> list[Rows]:
    """A whole transaction of `tenant_transaction` in one trip to the server: the rows of each statement,
    once it is committed. `first_lands`: the first statement has one of its own, before the others.

    For the hot path (docs/decisions/two-round-trips.md). Raises RuntimeError inside another transaction.
    """
    with _open_outermost_transaction(tenant_id) as at:
        first, *more = [_build_prepared_statement(query, values) for query, values in asked]
        between = [COMMIT, *_build_begin_statements(tenant_id)] if first_lands else []
        answers = _begin_and_execute(at, tenant_id, first, *between, *more, COMMIT)[2:-1]
        return answers[:1] + answers[1 + len(between) :]


def _begin_and_execute(at: "psycopg.Connection[Any]", tenant_id: UUID, *sayings: Statement) -> list[Rows]:
    """BEGIN, the tenant's name and the statements in one trip; the rows of all of them."""
    whole = (*_build_begin_statements(tenant_id), *sayings)
    answers, error = execute_pipeline(at, whole)
    if error is not None and error.sqlstate == GONE:
        at.rollback()
        answers, error = execute_pipeline(at, whole)
    if error is not None:
        raise error
    return answers


def _build_begin_statements(tenant_id: UUID) -> tuple[Statement, Statement]:
    if (reach := _REACH.get()) is not None:
        return BEGIN, Statement(_NAMED_NARROW, (str(tenant_id), reach.whose, reach.likes), prepared=True)
    return BEGIN, Statement(_NAMED, (str(tenant_id),), prepared=True)


def _build_prepared_statement(query: str, values: Mapping[str, object]) -> Statement:
    statement, names = _number_placeholders(query)
    return Statement(statement, [values[name] for name in names], prepared=True)


@cache
def _number_placeholders(query: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement under PostgreSQL's own placeholders, and which value each stands for: psycopg parses its
    own anew in every long statement."""
    names = tuple(dict.fromkeys(_PLACE.findall(query)))
    return _PLACE.sub(lambda found: f"${names.index(found[1]) + 1}", query).encode(), names


@contextmanager
def _open_outermost_transaction(tenant_id: UUID) -> Iterator["psycopg.Connection[Any]"]:
    """Open a transaction of the tenant; yield its connection.

    After a COMMIT that was sent in a trip Django has nothing left to commit.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    with transaction.atomic(durable=True):
        token = _CURRENT.set(tenant_id)
        try:
            with wrapper.wrap_database_errors:
                yield wrapper.connection
        finally:
            _CURRENT.reset(token)


def current_tenant() -> UUID | None:
    """The tenant whose transaction is open, or None."""
    return _CURRENT.get()


def raw_cursor() -> "psycopg.Cursor[Any]":
    """A psycopg cursor of the current transaction: parameters bound by the server, statements prepared.

    Raises OutsideTenant without a tenant: the guard does not see what goes through it.
    """
    if _CURRENT.get() is None:
        raise OutsideTenant(table="(raw cursor)")
    return psycopg.Cursor(_get_psycopg_connection())


def _get_psycopg_connection() -> "psycopg.Connection[Any]":
    # One look: Django's `connection` asks which thread this is at every attribute.
    wrapper = connections[DEFAULT_DB_ALIAS]
    wrapper.ensure_connection()
    underlying: psycopg.Connection[Any] = wrapper.connection
    return underlying


def take_advisory_lock(name: str) -> None:
    """Until the transaction ends nobody else holds this name: for what no row stands for that could be
    locked. Waits for whoever does. Raises OutsideTenant without a tenant."""
    raw_cursor().execute(_HOLD, (name,))


@cache
def _compile_table_pattern() -> re.Pattern[str]:
    """The tenant tables' names as one pattern."""
    names = [model._meta.db_table for model in apps.get_models() if issubclass(model, TenantOwned)]  # noqa: SLF001
    return re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")


def _guard_tenant_tables(
    execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Refuse a tenant table outside a tenant; costs nothing inside one."""
    if _CURRENT.get() is None and (found := _compile_table_pattern().search(str(sql))) is not None:
        raise OutsideTenant(table=found[1])
    return execute(sql, params, many, context)


def _put_guard(*, connection: Any, **_: Any) -> None:
    if connection.alias == "default" and _guard_tenant_tables not in connection.execute_wrappers:
        connection.execute_wrappers.append(_guard_tenant_tables)


def install_guard() -> None:
    """Guard every connection that is opened from now on."""
    connection_created.connect(_put_guard, dispatch_uid="tenancy.guard")

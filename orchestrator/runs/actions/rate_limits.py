"""Check whether one more task may be admitted under a tenant's and a principal's rates (R-BUDGET-11).

The runs themselves are counted, so a lost broker loses no count and a restart forgets none. The exact check
is the last step of an admission before its commit, under a lock that serializes the tenant's admissions: the
lock is held for a count and a commit, not for the whole admission.
"""

from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

from psycopg import sql

from budgets.actions import newest_rates
from budgets.core.rates import MINUTE, Count, Rates, check_rate_limits
from tenancy.db.tenant_context import raw_cursor, take_advisory_lock, whole_tenant

_MINE: Final = " AND submitted_by = %(who)s"
# Finds the run at the limit, counted from the newest: while it is younger than a minute, one more run is
# too many.
_MINUTE: Final = """
SELECT created_at FROM orchestrator_run
 WHERE tenant_id = %(tenant)s AND id <> %(run)s AND created_at > %(since)s{mine}
 ORDER BY created_at DESC OFFSET {limit} - 1 LIMIT 1"""
_LIVE: Final = """
SELECT count(*) FROM (SELECT 1 FROM orchestrator_run
  WHERE tenant_id = %(tenant)s AND id <> %(run)s AND status IN ({statuses}){mine} LIMIT {limit}) counted"""
STATUSES: Final = {"concurrent_runs": "'queued', 'in_progress'", "queue_depth": "'queued'"}


def check_rates(tenant_id: UUID, principal: UUID, at: datetime) -> None:
    """Check the rates without a lock, so that a flood is refused before it costs anything.

    Raises: RateReached.
    """
    _check_rate_counts(tenant_id, principal, None, at)


def hold_rates(tenant_id: UUID, principal: UUID, run: UUID, at: datetime) -> None:
    """Check the rates exactly, with `run` written and not yet committed.

    Joins the transaction and keeps the tenant's other admissions out until it ends.

    Raises: RateReached.
    """
    take_advisory_lock(f"admission:{tenant_id}")
    _check_rate_counts(tenant_id, principal, run, at)


def _check_rate_counts(tenant_id: UUID, principal: UUID, run: UUID | None, at: datetime) -> None:
    cursor = raw_cursor()
    rates = newest_rates(tenant_id, cursor)
    asked = [name for name, limit in rates if limit is not None]
    if not asked:
        return
    values = {"tenant": tenant_id, "who": principal, "run": run or UUID(int=0), "since": at - MINUTE}
    # A key restricted to its own runs is still counted against all runs of the tenant.
    with whole_tenant():
        cursor.execute(_build_rate_query(rates, asked), values)
        row = cast("tuple[Any, ...]", cursor.fetchone())
    check_rate_limits(
        rates,
        {name: _build_rate_count(name, rates, found) for name, found in zip(asked, row, strict=True)},
        at,
    )


def _build_rate_query(rates: Rates, asked: list[str]) -> sql.Composed:
    return sql.SQL("SELECT {}").format(
        sql.SQL(", ").join(
            sql.SQL("({})").format(_build_rate_subquery(name, getattr(rates, name))) for name in asked
        )
    )


def _build_rate_subquery(name: str, limit: int) -> sql.Composed:
    bare = name.removeprefix("key_")
    statuses = STATUSES.get(bare)
    template = sql.SQL(_MINUTE) if statuses is None else sql.SQL(_LIVE)
    mine = sql.SQL(_MINE if name.startswith("key_") else "")
    more = {} if statuses is None else {"statuses": sql.SQL(statuses)}
    return template.format(limit=sql.Literal(limit), mine=mine, **more)


def _build_rate_count(name: str, rates: Rates, found: Any) -> Count:
    if name.removeprefix("key_") in STATUSES:
        return Count(number=found)
    return Count(number=0 if found is None else getattr(rates, name), since=found)

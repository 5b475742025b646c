"""A tenant's ceilings and the accounts of its days and months (R-BUDGET-9)."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from budgets.actions.alerts import tell_standing
from budgets.core.amounts import ZERO, Vector
from budgets.core.ceilings import Ceilings, describe_raised_ceilings, of_tier
from budgets.core.errors import CeilingReached, CeilingTooNear
from budgets.core.periods import Span, day_of, month_of
from budgets.core.posting import COST, Cause, Draft, LineState
from budgets.core.statistics.alert_thresholds import at_ceiling, bears_in, opens_in
from budgets.core.tranche import Windows
from budgets.ledger_sql import Cursor, PostingSheet, locked_lines
from budgets.models import TenantCeiling
from tenancy.actions import write_audit_entry
from tenancy.core.errors import Stale
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.people.dual_control import ask_second
from traces.core.canonical import format_decimal

CEILINGS: Final = "the ceilings"
"""What a change of them is called that waits for a second administrator."""
_STANDING: Final = """
SELECT a.kind, a.id, a.window_start, a.window_end, l."limit", l.used, l.reserved
  FROM budgets_account a JOIN budgets_line l ON l.tenant_id = a.tenant_id AND l.account_id = a.id
 WHERE a.tenant_id = %(tenant)s AND a.kind IN ('tenant_day', 'tenant_month')
   AND a.window_start <= %(at)s AND a.window_end > %(at)s"""
_NEWEST: Final = """
SELECT per_run_usd, daily_usd, monthly_usd, tranche_usd FROM budgets_tenantceiling
 WHERE tenant_id = %(tenant)s ORDER BY set_at DESC, id DESC LIMIT 1"""
_IN_FORCE: Final = """
SELECT per_run_usd, daily_usd, monthly_usd, tranche_usd FROM budgets_tenantceiling
 WHERE tenant_id = %(tenant)s AND set_at <= %(at)s ORDER BY set_at DESC, id DESC LIMIT 1"""
_HOLD_CEILINGS: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))"
_SAME_CEILINGS: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%(key)s, 0))"
_TO_COME: Final = """
SELECT id, kind FROM budgets_account
 WHERE tenant_id = %(tenant)s AND kind IN ('tenant_day', 'tenant_month') AND window_end > %(at)s"""
_LIMIT: Final = """
UPDATE budgets_line SET "limit" = %(limit)s
 WHERE tenant_id = %(tenant)s AND account_id = %(account)s AND dimension = 'cost_usd'"""
_TENANT: Final = "SELECT time_zone, tier FROM tenancy_tenant WHERE id = %(tenant)s"
# A window never reaches into the one before, even when the tenant's time zone changed in between.
_OPEN_WINDOW: Final = """
WITH opened AS (
  INSERT INTO budgets_account (id, tenant_id, kind, window_start, window_end, currency, opened_at)
  SELECT %(id)s, %(tenant)s, %(kind)s::text,
         greatest(%(start)s::timestamptz,
                  (SELECT max(a.window_end) FROM budgets_account a
                    WHERE a.tenant_id = %(tenant)s AND a.kind = %(kind)s::text AND a.window_end <= %(at)s)),
         %(end)s, 'USD', %(at)s
  ON CONFLICT DO NOTHING RETURNING id)
INSERT INTO budgets_line (id, tenant_id, account_id, dimension, "limit", used, reserved)
SELECT %(line)s, %(tenant)s, id, 'cost_usd', %(limit)s::numeric, 0, 0 FROM opened
RETURNING account_id"""


def newest_ceilings(tenant_id: UUID, cursor: Cursor) -> Ceilings:
    """The ceilings in force: the newest version set, else those of the tenant's tier."""
    cursor.execute(_NEWEST, {"tenant": tenant_id}, prepare=True)
    return _fetch_ceilings(tenant_id, cursor)


def ceilings_at(tenant_id: UUID, at: datetime, cursor: Cursor) -> Ceilings:
    """The ceilings that were in force at `at`: the newest version set by then, else those of the tenant's
    tier, whose history is not kept."""
    cursor.execute(_IN_FORCE, {"tenant": tenant_id, "at": at})
    return _fetch_ceilings(tenant_id, cursor)


def _fetch_ceilings(tenant_id: UUID, cursor: Cursor) -> Ceilings:
    if (row := cursor.fetchone()) is not None:
        return Ceilings(per_run_usd=row[0], daily_usd=row[1], monthly_usd=row[2], tranche_usd=row[3])
    return of_tier(_load_zone_and_tier(tenant_id, cursor)[1])


def ensure_tenant_windows(tenant_id: UUID, at: datetime, cursor: Cursor | None = None) -> Windows:
    """The tenant's day and month accounts that hold `at`, opened with its ceilings if need be. Joins the
    transaction."""
    cursor = cursor or raw_cursor()
    standing = _load_window_lines(tenant_id, at, cursor)
    if len(standing) < 2:
        # Ceilings being set meanwhile either see the window opened here, or are those it is opened with.
        cursor.execute(_SAME_CEILINGS, {"key": _build_lock_key(tenant_id)})
        zone = ZoneInfo(_load_zone_and_tier(tenant_id, cursor)[0])
        ceilings = newest_ceilings(tenant_id, cursor)
        for kind, span, limit in (
            ("tenant_day", day_of(at, zone), ceilings.daily_usd),
            ("tenant_month", month_of(at, zone), ceilings.monthly_usd),
        ):
            if kind not in standing:
                _open_window(cursor, tenant_id, kind=kind, span=span, limit=limit, at=at)
        standing = _load_window_lines(tenant_id, at, cursor)
    day, month = standing["tenant_day"], standing["tenant_month"]
    return Windows(
        day=day[1],
        month=month[1],
        starts_at=day[2],
        ends_at=min(day[3], month[3]),
        day_left=_parse_line_row(day).left,
        month_left=_parse_line_row(month).left,
        day_limit=day[4],
        month_limit=month[4],
        over=_parse_line_row(day).over or _parse_line_row(month).over,
    )


def charge_tenant_check(tenant_id: UUID, at: datetime, cursor: Cursor | None = None) -> None:
    """Admission's look at the ceilings. Raises CeilingReached with `retry_after` (seconds to the window's
    turn, fewer where it is full of what runs hold) when the day or month is at its ceiling (R-BUDGET-10).

    A ceiling of zero forbids spending, not runs that spend nothing (R-BUDGET-16).
    """
    cursor = cursor or raw_cursor()
    ensure_tenant_windows(tenant_id, at, cursor)
    standing = _load_window_lines(tenant_id, at, cursor)
    for kind, window in (("tenant_month", "monthly"), ("tenant_day", "daily")):
        row = standing[kind]
        line = _parse_line_row(row)
        if at_ceiling(line):
            wait = opens_in(line, (row[3] - at).total_seconds())
            raise CeilingReached(window=window, limit=format_decimal(line.limit or ZERO), retry_after=wait)


def require_room(tenant_id: UUID, wanted: Decimal, at: datetime, cursor: Cursor | None = None) -> None:
    """Admission's closer look, at what the run begins with. Raises CeilingTooNear, with `retry_after`, when
    the day or month leaves less than `wanted` US$ (R-BUDGET-10)."""
    standing = _load_window_lines(tenant_id, at, cursor or raw_cursor())
    for kind, window in (("tenant_month", "monthly"), ("tenant_day", "daily")):
        row = standing[kind]
        line = _parse_line_row(row)
        if line.left is not None and line.left < wanted:
            raise CeilingTooNear(
                window=window,
                limit=format_decimal(line.limit or ZERO),
                left=format_decimal(line.left),
                wanted=format_decimal(wanted),
                retry_after=bears_in(line, wanted, (row[3] - at).total_seconds()),
            )


def set_ceilings(
    tenant_id: UUID,
    ceilings: Ceilings,
    *,
    by: UUID | None,
    reason: str,
    at: datetime,
    agreed: UUID | None = None,
) -> None:
    """Set a new version of the tenant's ceilings; it holds from the next reservation on, today's included
    (B8).

    Lowering one below what is already spent is legal and stops only what comes next. Audited. Joins the
    transaction.
    """
    cursor = raw_cursor()
    cursor.execute(_HOLD_CEILINGS, {"key": _build_lock_key(tenant_id)})
    before = newest_ceilings(tenant_id, cursor)
    TenantCeiling.objects.create(
        tenant_id=tenant_id, set_by=by, reason=reason, set_at=at, **ceilings.model_dump()
    )
    ensure_tenant_windows(tenant_id, at, cursor)
    cursor.execute(_TO_COME, {"tenant": tenant_id, "at": at})
    kinds: dict[UUID, str] = dict(cursor.fetchall())
    limits = {"tenant_day": ceilings.daily_usd, "tenant_month": ceilings.monthly_usd}
    for account, line in locked_lines(cursor, tenant_id, kinds).items():
        limit = limits[kinds[account]]
        cursor.execute(_LIMIT, {"tenant": tenant_id, "account": account, "limit": limit})
        tell_standing(tenant_id, account, line._replace(limit=limit), at, cursor)
    write_audit_entry(
        tenant_id,
        by,
        verb="set_ceilings",
        object=f"tenant:{tenant_id}",
        before=_format_ceilings(before),
        after={**_format_ceilings(ceilings), **({} if agreed is None else {"agreed_by": str(agreed)})},
        reason=reason,
    )


def change_ceilings(
    tenant_id: UUID,
    ceilings: Ceilings,
    *,
    by: UUID | None,
    reason: str,
    expected: str | None = None,
    agreed: UUID | None = None,
) -> Ceilings:
    """`set_ceilings` as an admin asks for it: now, and only if they still are what `expected` (their tag)
    says. The same again changes nothing. Outermost verb: owns the transaction.

    A ceiling that is raised or removed needs a second administrator; `agreed` is who agreed. Raises Stale,
    SecondPersonNeeded, and InvalidInput where one administrator alone gives no reason for more.
    """
    with tenant_transaction(tenant_id):
        cursor = raw_cursor()
        cursor.execute(_HOLD_CEILINGS, {"key": _build_lock_key(tenant_id)})
        before = newest_ceilings(tenant_id, cursor)
        if expected is not None and expected != before.tag:
            raise Stale
        if before != ceilings:
            ask_second(
                tenant_id,
                CEILINGS,
                describe_raised_ceilings(before, ceilings),
                by=by,
                agreed=agreed,
                reason=reason,
                tag=before.digest,
            )
            set_ceilings(tenant_id, ceilings, by=by, agreed=agreed, reason=reason, at=database_now())
        return newest_ceilings(tenant_id, cursor)


def _build_lock_key(tenant_id: UUID) -> str:
    return f"ceilings:{tenant_id}"


def _format_ceilings(ceilings: Ceilings) -> dict[str, Any]:
    amounts = {name: getattr(ceilings, name) for name in Ceilings.model_fields}
    return {name: None if amount is None else format_decimal(amount) for name, amount in amounts.items()}


def _load_window_lines(tenant_id: UUID, at: datetime, cursor: Cursor) -> dict[str, Any]:
    cursor.execute(_STANDING, {"tenant": tenant_id, "at": at}, prepare=True)
    return {row[0]: row for row in cursor.fetchall()}


def _parse_line_row(row: Any) -> LineState:
    return LineState(limit=row[4], used=row[5], reserved=row[6])


def _load_zone_and_tier(tenant_id: UUID, cursor: Cursor) -> tuple[str, str]:
    cursor.execute(_TENANT, {"tenant": tenant_id}, prepare=True)
    row = cursor.fetchone()
    if row is None:
        return "UTC", ""
    return str(row[0]), str(row[1])


def _open_window(
    cursor: Cursor, tenant_id: UUID, *, kind: str, span: Span, limit: Decimal | None, at: datetime
) -> None:
    account = fresh_id()
    cursor.execute(
        _OPEN_WINDOW,
        {
            "id": account,
            "line": fresh_id(),
            "tenant": tenant_id,
            "kind": kind,
            "start": span.start,
            "end": span.end,
            "limit": limit,
            "at": at,
        },
    )
    if cursor.fetchone() is None:
        return
    sheet = PostingSheet(tenant=tenant_id, run=None, at=at)
    sheet.entry(Draft(cause=Cause.OPEN, effect_id=None, limit=Vector.of({COST: limit})), account)
    sheet.send(cursor)

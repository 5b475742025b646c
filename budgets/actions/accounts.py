"""A run's account: opened at admission, extended by a person's grant, closed at the end (R-BUDGET-3, 7,
9)."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from budgets.actions.alerts import tell_squared
from budgets.actions.ceilings import newest_ceilings
from budgets.actions.posting import Posting, book_squaring, held_book, post_to_ledger
from budgets.core.amounts import Vector
from budgets.core.dimension import Dimension
from budgets.core.errors import AccountClosed, OverCeiling, ReservationsOpen
from budgets.core.posting import COST, Cause, Draft, Settle
from budgets.core.tranche import close_tranches
from budgets.ledger_sql import Cursor, PostingSheet, locked_lines
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor
from traces.core.canonical import format_decimal

_OPEN: Final = """
WITH opened AS (
  INSERT INTO budgets_account (id, tenant_id, kind, run_id, parent_id, currency, opened_at)
  VALUES (%(run)s, %(tenant)s, 'run', %(run)s, %(parent)s, 'USD', %(at)s) RETURNING id)
INSERT INTO budgets_line (id, tenant_id, account_id, dimension, "limit", used, reserved)
SELECT w.id, %(tenant)s, opened.id, w.dimension, w.lim, 0, 0
  FROM opened,
       unnest(%(ids)s::uuid[], %(dimensions)s::text[], %(limits)s::numeric[]) AS w(id, dimension, lim)"""
# One pass over the run's own entries: an anti-join of reservations with settlements would grow with the
# square of a run's length where the planner knows the table as small.
_IN_FLIGHT: Final = """
SELECT e.effect_id FROM budgets_entry e
 WHERE e.tenant_id = %(tenant)s AND e.run_id = %(run)s AND e.cause IN ('reserve', 'settle', 'release')
   AND e.effect_id IS NOT NULL
 GROUP BY e.effect_id
HAVING bool_or(e.cause = 'reserve') AND NOT bool_or(e.cause <> 'reserve')
 ORDER BY min(e.id::text)"""
_EXTEND: Final = """
UPDATE budgets_line l SET "limit" = l."limit" + w.more
  FROM unnest(%(dimensions)s::text[], %(amounts)s::numeric[]) AS w(dimension, more)
 WHERE l.tenant_id = %(tenant)s AND l.account_id = %(run)s AND l.dimension = w.dimension
   AND l."limit" IS NOT NULL
RETURNING l.dimension"""
_COST_LIMIT: Final = """
SELECT "limit" FROM budgets_line
 WHERE tenant_id = %(tenant)s AND account_id = %(run)s AND dimension = 'cost_usd'"""
_CLOSE: Final = "UPDATE budgets_account SET closed_at = %(at)s WHERE id = %(run)s AND closed_at IS NULL"


def open_run_account(
    tenant_id: UUID,
    run_id: UUID,
    limits: Mapping[str, Decimal | None],
    at: datetime,
    cursor: Cursor | None = None,
) -> Vector:
    """Open the run's account with a line per dimension; an absent limit is none. The limits as they hold.

    The tenant's ceiling per run tightens the cost limit (R-BUDGET-9). Joins the admission's transaction.
    Raises DimensionUnknown, AmountInvalid.
    """
    cursor = cursor or raw_cursor()
    ceiling = newest_ceilings(tenant_id, cursor).per_run_usd
    held = Vector.of(limits).with_tighter_limits(Vector.of({COST: ceiling}))
    open_account(tenant_id, run_id, held, at, cursor)
    return held


def open_account(
    tenant_id: UUID, run_id: UUID, held: Vector, at: datetime, cursor: Cursor, *, parent: UUID | None = None
) -> None:
    """Open an account with a line per dimension, and the entry that says so. Joins the transaction."""
    cursor.execute(
        _OPEN,
        {
            "run": run_id,
            "parent": parent,
            "tenant": tenant_id,
            "at": at,
            "ids": [fresh_id() for _ in Dimension],
            "dimensions": [dimension.value for dimension in Dimension],
            "limits": [held.get(dimension) for dimension in Dimension],
        },
    )
    sheet = PostingSheet(tenant=tenant_id, run=run_id, at=at)
    sheet.entry(Draft(cause=Cause.OPEN, effect_id=None, limit=held), run_id)
    sheet.send(cursor)


def extend_run_account(
    tenant_id: UUID,
    run_id: UUID,
    amounts: Mapping[str, Decimal],
    *,
    by: str,
    at: datetime,
    cursor: Cursor,
) -> Mapping[str, str]:
    """Raise limits of the run's lines: original minus used plus granted (R-BUDGET-7).

    Returns the new entries' digests. A line without a limit stays so. Called by the ring, which records who
    granted it. The tenant's ceiling per run is asked again, for it may have been lowered since the grant.
    Raises OverCeiling, AccountMissing, AccountClosed, DimensionUnknown, AmountInvalid.
    """
    del by  # the trace's event names the person; the entry is bound to that event's record
    if held_book(tenant_id, run_id, at, cursor).closed:
        raise AccountClosed(run=str(run_id))
    more = Vector.of(amounts).nonzero()
    _within_ceiling(tenant_id, run_id, more, cursor)
    cursor.execute(
        _EXTEND,
        {
            "tenant": tenant_id,
            "run": run_id,
            "dimensions": [dimension.value for dimension in more],
            "amounts": list(more.values()),
        },
    )
    raised = {str(row[0]) for row in cursor.fetchall()}
    granted = Vector.of({dimension: more[dimension] for dimension in more if dimension.value in raised})
    if not granted:
        return {}
    sheet = PostingSheet(tenant=tenant_id, run=run_id, at=at)
    sheet.entry(Draft(cause=Cause.EXTEND, effect_id=None, limit=granted), run_id)
    sheet.send(cursor)
    return sheet.digests


def _within_ceiling(tenant_id: UUID, run_id: UUID, more: Vector, cursor: Cursor) -> None:
    """Raises OverCeiling where the run would have more money than the tenant lets one run have."""
    if not more.amount(COST):
        return
    ceiling = newest_ceilings(tenant_id, cursor).per_run_usd
    cursor.execute(_COST_LIMIT, {"tenant": tenant_id, "run": run_id})
    row = cursor.fetchone()
    if ceiling is None or row is None or row[0] is None or row[0] + more.amount(COST) <= ceiling:
        return
    raise OverCeiling(ceiling=format_decimal(ceiling), limit=format_decimal(row[0] + more.amount(COST)))


def close_run_account(
    tenant_id: UUID,
    run_id: UUID,
    at: datetime,
    *,
    settles: tuple[Settle, ...] = (),
    cursor: Cursor | None = None,
) -> Posting:
    """Settle what is given, return the rest of the tranches to the tenant, close the account. Idempotent.

    Raises ReservationsOpen while an effect still holds a reservation that `settles` does not name: who ends a
    run says what became of everything in flight. Raises AccountMissing, LedgerMoved.
    """
    cursor = cursor or raw_cursor()
    book = held_book(tenant_id, run_id, at, cursor)
    if book.closed:
        return Posting()
    settled = post_to_ledger(tenant_id, run_id, settles=settles, reserves=(), at=at, cursor=cursor, book=book)
    cursor.execute(_IN_FLIGHT, {"tenant": tenant_id, "run": run_id})
    if effects := [str(row[0]) for row in cursor.fetchall()]:
        raise ReservationsOpen(effects=effects)
    entries = dict(settled.entries)
    tranches = held_book(tenant_id, run_id, at, cursor).tranches
    if tranches:
        sheet = PostingSheet(tenant=tenant_id, run=run_id, at=at)
        accounts = [run_id, *(account for tranche in tranches for account in (tranche.day, tranche.month))]
        lines = locked_lines(cursor, tenant_id, dict.fromkeys(accounts))
        squarings = close_tranches(tranches)
        tell_squared(tenant_id, lines, squarings, at, cursor)
        for squaring in squarings:
            book_squaring(sheet, squaring, asked=False)
        sheet.send(cursor).check_written()
        entries |= sheet.digests
    cursor.execute(_CLOSE, {"run": run_id, "at": at})
    return Posting(entries=entries, overrun=settled.overrun)

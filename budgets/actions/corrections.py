"""Corrections of wrong prices: always a new entry, never a rewritten one (R-BUDGET-15)."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from budgets.actions.alerts import tell_standing
from budgets.actions.ceilings import ensure_tenant_windows
from budgets.actions.posting import book_squaring, held_book
from budgets.core.amounts import ZERO, Vector
from budgets.core.errors import ReservationUnknown
from budgets.core.posting import COST, Cause, Draft
from budgets.core.tranche import Tranche, TrancheChanges, rebalance_tranches
from budgets.ledger_sql import Cursor, PostingSheet, locked_lines
from tenancy.actions import write_audit_entry
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor
from traces.core.canonical import format_decimal

# The first entry of the effect that names a tranche or window: of its reservation, of its settlement if the
# price was raised in flight, or of an earlier correction. A call that held no money names no tranche.
_PLACE: Final = """
SELECT t.id, coalesce(t.day_id, d.id), coalesce(t.month_id, e.month_id),
       coalesce(t.starts_at, d.window_start), coalesce(t.ends_at, d.window_end)
  FROM budgets_entry e
  LEFT JOIN budgets_tranche t ON t.tenant_id = e.tenant_id AND t.id = e.tranche_id
  LEFT JOIN budgets_account d
         ON d.tenant_id = e.tenant_id AND d.id = e.account_id AND e.month_id IS NOT NULL
 WHERE e.tenant_id = %(tenant)s AND e.run_id = %(run)s AND e.effect_id = %(effect)s
 ORDER BY coalesce(t.day_id, d.id) IS NULL, e.id LIMIT 1"""


def record_cost_correction(
    tenant_id: UUID,
    run_id: UUID,
    *,
    effect_id: str,
    delta: Decimal,
    price_version: str,
    by: UUID | None,
    reason: str,
    at: datetime,
) -> Mapping[str, str]:
    """Call `book_correction` and write its audit entry; return the entries' digests.

    Joins the caller's transaction.
    """
    entries = book_correction(
        tenant_id, run_id, effect_id=effect_id, delta=delta, price_version=price_version, at=at
    )
    write_audit_entry(
        tenant_id,
        by,
        verb="correct_cost",
        object=f"effect:{effect_id}",
        before={},
        after={"delta_usd": format_decimal(delta), "price_version": price_version},
        reason=reason,
    )
    return entries


def book_correction(
    tenant_id: UUID, run_id: UUID, *, effect_id: str, delta: Decimal, price_version: str, at: datetime
) -> Mapping[str, str]:
    """Add `delta` US$ (negative: give back) to the cost of an effect.

    The correction is booked on the run and on the day and month where the effect's money is booked. An
    effect that had no money so far, because its price was zero, is booked on the day and month of `at`.

    Balances, headroom, blocks and alerts follow at once, on closed accounts too. The caller audits the
    correction, notifies a run in progress, and holds the run's row. Returns the entries' digests.

    Raises: ReservationUnknown for an effect that the run never had, LedgerMoved when the run changed
      meanwhile.
    """
    cursor = raw_cursor()
    book = held_book(tenant_id, run_id, at, cursor)
    home, drawn = _locate_effect_tranche(tenant_id, run_id, effect_id, at, cursor)
    amount = Vector.of({COST: delta})
    sheet = PostingSheet(tenant=tenant_id, run=run_id, at=at)
    accounts = [run_id, home.day, home.month]
    for tranche in book.tranches:
        accounts += [tranche.day, tranche.month]
    lines = locked_lines(cursor, tenant_id, dict.fromkeys(accounts))
    # Spending so far is booked first, so that a refund never exceeds the amount booked on the line.
    squarings, _ = rebalance_tranches(
        TrancheChanges(), book.tranches, lines, opened=home, at=at, chunk=ZERO, run_left=None
    )
    for squaring in squarings:
        book_squaring(sheet, squaring, asked=False)
    if sheet.lines:
        _send_sheet(sheet, cursor)
    fixed = PostingSheet(tenant=tenant_id, run=run_id, at=at)
    draft = Draft(cause=Cause.CORRECTION, effect_id=effect_id, used=amount, price_version=price_version)
    for account in accounts[:3]:
        fixed.line(account, COST, delta, ZERO)
    fixed.entry(draft, run_id)
    fixed.entry(draft, home.day, month=home.month, tranche=home.id if drawn else None)
    _send_sheet(fixed, cursor)
    windows = dict.fromkeys(accounts[1:])
    for account, line in locked_lines(cursor, tenant_id, windows).items():
        tell_standing(tenant_id, account, line, at, cursor)
    return {**sheet.digests, **fixed.digests}


def _send_sheet(sheet: PostingSheet, cursor: Cursor) -> None:
    sheet.send(cursor).check_written()


def _locate_effect_tranche(
    tenant_id: UUID, run_id: UUID, effect_id: str, at: datetime, cursor: Cursor
) -> tuple[Tranche, bool]:
    """Return the tranche of the effect's money, and whether the effect was drawn on it.

    Without such a tranche the result is a placeholder with the day and month to book on.

    Raises: ReservationUnknown for an effect without entries.
    """
    cursor.execute(_PLACE, {"tenant": tenant_id, "run": run_id, "effect": effect_id})
    row = cursor.fetchone()
    if row is None:
        raise ReservationUnknown(effect=effect_id)
    tranche, day, month, starts_at, ends_at = row
    if day is None:
        return _build_today_tranche(tenant_id, at, cursor), False
    found = Tranche(id=tranche or fresh_id(), day=day, month=month, starts_at=starts_at, ends_at=ends_at)
    return found, tranche is not None


def _build_today_tranche(tenant_id: UUID, at: datetime, cursor: Cursor) -> Tranche:
    windows = ensure_tenant_windows(tenant_id, at, cursor)
    return Tranche(
        id=fresh_id(), day=windows.day, month=windows.month, starts_at=windows.starts_at,
        ends_at=windows.ends_at,
    )  # fmt: skip

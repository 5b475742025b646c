"""Queries of budgets: headroom, usage, the ledger of a run. All run in the tenant's context."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from budgets.account_snapshot import (
    BOOK,
    HEADROOM,
    AccountSnapshot,
    Headroom,
    build_snapshot_parameters,
    read_book,
    read_headroom,
)
from budgets.core.amounts import Vector
from budgets.core.dimension import Dimension
from budgets.core.entry import read_amounts
from budgets.core.errors import AccountMissing
from budgets.core.posting import LineState
from budgets.ledger_sql import Cursor
from budgets.models import Entry, Line
from tenancy.core.errors import OutsideTenant
from tenancy.db.tenant_context import current_tenant, raw_cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """One entry for display.

    `tenant_line` marks the entries of the tenant's day and month instead of the run.
    """

    id: UUID
    cause: str
    effect_id: str | None
    used: Vector
    reserved: Vector
    limit: Vector
    unknown: bool
    price_version: str
    tenant_line: bool
    at: datetime


def get_headroom(run_id: UUID, at: datetime, cursor: Cursor | None = None) -> Headroom:
    """Load the headroom of the run and of its tenant's day and month, in one statement (R-BUDGET-6).

    Inside a pipeline send `account_snapshot.HEADROOM` and parse it with `account_snapshot.read_headroom`.

    Raises: AccountMissing.
    """
    cursor = cursor or raw_cursor()
    cursor.execute(HEADROOM, build_snapshot_parameters(_require_tenant_id(), run_id, at), prepare=True)
    found = read_headroom(run_id, cursor.fetchall(), at)
    if found is None:
        raise AccountMissing(run=str(run_id))
    return found


def get_account_snapshot(
    run_id: UUID, at: datetime | None = None, cursor: Cursor | None = None
) -> AccountSnapshot:
    """Load the account state for a posting, without the run's own lines: cheaper than `get_headroom`.

    Raises: AccountMissing.
    """
    cursor = cursor or raw_cursor()
    cursor.execute(BOOK, build_snapshot_parameters(_require_tenant_id(), run_id, at), prepare=True)
    found = read_book(run_id, cursor.fetchall())
    if found is None:
        raise AccountMissing(run=str(run_id))
    return found


def get_usage_lines(run_id: UUID) -> Mapping[Dimension, LineState]:
    """Load every line of the run: limit, used, reserved, left. Empty if the run has no account."""
    rows = {line.dimension: line for line in Line.objects.filter(account_id=run_id)}
    return {
        dimension: LineState(limit=row.limit, used=row.used, reserved=row.reserved)
        for dimension in Dimension
        if (row := rows.get(dimension.value)) is not None
    }


def list_run_entries(run_id: UUID) -> list[EntryView]:
    """List the run's entries in the order written, by the database's clock (R-BUDGET-3).

    Ids are made in a process, whose clock may differ.
    """
    return [_build_entry_view(entry) for entry in Entry.objects.filter(run_id=run_id).order_by("at", "id")]


def tenant_spending(at: datetime) -> Mapping[str, Decimal]:
    """Sum the tenant's spending of today and of this month, in US$.

    The sum covers amounts booked on the tenant's lines and amounts drawn on open tranches. Keys:
    tenant_day, tenant_month.
    """
    cursor = raw_cursor()
    cursor.execute(
        """WITH held AS MATERIALIZED (
               SELECT day_id, month_id, sum(used) AS used FROM budgets_tranche
                WHERE tenant_id = %(tenant)s AND closed_at IS NULL GROUP BY day_id, month_id)
           SELECT a.kind, l.used + coalesce((SELECT sum(held.used) FROM held
                    WHERE a.id IN (held.day_id, held.month_id)), 0)
             FROM budgets_account a JOIN budgets_line l ON l.tenant_id = a.tenant_id AND l.account_id = a.id
            WHERE a.tenant_id = %(tenant)s AND a.window_start <= %(at)s AND a.window_end > %(at)s""",
        {"tenant": _require_tenant_id(), "at": at},
    )
    spent = {str(kind): Decimal(amount) for kind, amount in cursor.fetchall()}
    return {kind: spent.get(kind, Decimal(0)) for kind in ("tenant_day", "tenant_month")}


def _build_entry_view(entry: Entry) -> EntryView:
    used, reserved, limit = read_amounts(entry.amounts)
    return EntryView(
        id=entry.id,
        cause=entry.cause,
        effect_id=entry.effect_id,
        used=used,
        reserved=reserved,
        limit=limit,
        unknown=entry.unknown,
        price_version=entry.price_version,
        tenant_line=entry.month_id is not None,
        at=entry.at,
    )


def _require_tenant_id() -> UUID:
    if (tenant_id := current_tenant()) is None:
        raise OutsideTenant(table="budgets_account")
    return tenant_id

"""Ceilings and spending of a tenant: windows, versions of limits, days (R-BUDGET-9, R-UI-7).

All functions run in the tenant's context. The sums are those of the lines and tranches that the
reservations are made on, so that a page and the API agree to the cent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from budgets.core.amounts import ZERO
from budgets.core.statistics.spend_forecast import SpendForecast, forecast_spending
from budgets.models import RateLimit, TenantCeiling
from tenancy.core.errors import OutsideTenant
from tenancy.db.tenant_context import current_tenant, raw_cursor

# A line counts booked and held amounts; amounts that runs have used of an open tranche are spent too.
_WINDOWS: Final = """
WITH held AS MATERIALIZED (
  SELECT day_id, month_id, sum(used) AS used FROM budgets_tranche
   WHERE tenant_id = %(tenant)s AND closed_at IS NULL GROUP BY day_id, month_id)
SELECT a.kind, a.id, a.window_start, a.window_end, l."limit", l.used, l.reserved,
       coalesce((SELECT sum(held.used) FROM held WHERE a.id IN (held.day_id, held.month_id)), 0)
  FROM budgets_account a JOIN budgets_line l ON l.tenant_id = a.tenant_id AND l.account_id = a.id
 WHERE a.tenant_id = %(tenant)s AND a.kind IN ({kinds}) AND a.window_end > %(since)s
   AND a.window_start <= %(at)s
 ORDER BY a.window_start"""
# One lookup per line: with a plain join, the planner may scan the lines of all runs.
_LARGEST: Final = """
WITH seen AS (
  (SELECT id FROM budgets_runfigures
    WHERE tenant_id = %(tenant)s AND ended_at >= %(since)s AND cost > 0 ORDER BY cost DESC LIMIT %(most)s)
  UNION
  SELECT run_account_id FROM budgets_tranche WHERE tenant_id = %(tenant)s AND closed_at IS NULL)
SELECT line.account_id, line.used, line."limit", coalesce(figures.workflow, '')
  FROM seen CROSS JOIN LATERAL (
       SELECT l.account_id, l.used, l."limit" FROM budgets_line l
        WHERE l.tenant_id = %(tenant)s AND l.account_id = seen.id AND l.dimension = 'cost_usd' LIMIT 1) line
  LEFT JOIN budgets_runfigures figures ON figures.tenant_id = %(tenant)s AND figures.id = line.account_id
 WHERE line.used > 0 ORDER BY line.used DESC, line.account_id LIMIT %(most)s"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A day or a month: US$ spent, held for runs, and the ceiling (None: none)."""

    kind: str
    account: UUID
    start: datetime
    end: datetime
    limit: Decimal | None
    spent: Decimal
    held: Decimal

    @property
    def left(self) -> Decimal | None:
        """The amount that may still be reserved, never below zero; None without a ceiling."""
        return None if self.limit is None else max(ZERO, self.limit - self.spent - self.held)

    def outlook(self, at: datetime) -> SpendForecast | None:
        """Forecast the window's spending."""
        return forecast_spending(self.spent, self.held, self.limit, start=self.start, end=self.end, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRun:
    """A run with large spending: US$ used and its limit. `workflow` is "" while the run is in progress."""

    run: UUID
    workflow: str
    used: Decimal
    limit: Decimal | None


def windows_now(at: datetime) -> Mapping[str, Window]:
    """Load the day (`tenant_day`) and month (`tenant_month`) that contain `at`, if they were opened."""
    found = _list_windows(("tenant_day", "tenant_month"), since=at, at=at)
    return {window.kind: window for window in found}


def list_day_windows(at: datetime, count: int) -> list[Window]:
    """List the opened days among the tenant's last `count` days, oldest first."""
    return _list_windows(("tenant_day",), since=at - timedelta(days=count), at=at)


def largest_runs(since: datetime, most: int = 10) -> list[LargeRun]:
    """List the runs with the largest spending that are in progress or ended since then."""
    cursor = raw_cursor()
    cursor.execute(_LARGEST, {"tenant": _require_tenant_id(), "since": since, "most": most})
    return [LargeRun(run=row[0], used=row[1], limit=row[2], workflow=row[3]) for row in cursor.fetchall()]


def ceiling_versions(most: int = 20) -> "Sequence[TenantCeiling]":
    """List the versions of the ceilings with their authors, newest first."""
    return list(TenantCeiling.objects.order_by("-set_at", "-id")[:most])


def ceiling_version_at(at: datetime) -> "TenantCeiling | None":
    """Return the version of the ceilings in force at `at`; None if the tenant's tier applied."""
    return TenantCeiling.objects.filter(set_at__lte=at).order_by("-set_at", "-id").first()


def rate_versions(most: int = 20) -> "Sequence[RateLimit]":
    """List the versions of the rate limits with their authors, newest first."""
    return list(RateLimit.objects.order_by("-set_at", "-id")[:most])


def _list_windows(kinds: tuple[str, ...], *, since: datetime, at: datetime) -> list[Window]:
    cursor = raw_cursor()
    # The kinds are literals: with parameters, the planner scans the accounts of all runs.
    statement = _WINDOWS.format(kinds=", ".join(f"'{kind}'" for kind in kinds))
    cursor.execute(statement.encode(), {"tenant": _require_tenant_id(), "since": since, "at": at})
    return [_parse_window_row(row) for row in cursor.fetchall()]


def _parse_window_row(row: tuple[Any, ...]) -> Window:
    kind, account, start, end, limit, used, reserved, drawn = row
    return Window(
        kind=kind, account=account, start=start, end=end, limit=limit, spent=used + drawn,
        held=max(ZERO, reserved - drawn),
    )  # fmt: skip


def _require_tenant_id() -> UUID:
    if (tenant_id := current_tenant()) is None:
        raise OutsideTenant(table="budgets_account")
    return tenant_id

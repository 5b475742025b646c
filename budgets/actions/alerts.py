"""Telling a tenant's administrators that a day or month fills up (R-BUDGET-10).

An alert is a row with a unique key, written in the transaction that moves the line: it is there exactly once,
whatever crashes. The letters to the administrators are rows of the same statement;
`budgets.actions.alert_outbox` sends them. So is the message to the tenant's endpoints, which the
orchestrator delivers (R-API-6).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from budgets.core.posting import LineState
from budgets.core.statistics.alert_thresholds import (
    FULL,
    LAST_PART,
    compute_reached_thresholds,
    newly_reached,
)
from budgets.core.tranche import TrancheReconciliation
from budgets.ledger_sql import Cursor
from tenancy.core.event_kinds import BUDGET_ALERT
from tenancy.db.ids import fresh_id
from tenancy.notifications.outgoing import write_outgoing_message
from traces.core.canonical import format_decimal

_ROW: Final = "id, kind, window_start, window_end, threshold, limit_usd, spent_usd, held_usd"
_TOLD: Final = f"{_ROW}, refused"
# The letters of what is raised, and what the messages say of it.
_LETTERS: Final = f"""
, letters AS (
  INSERT INTO budgets_alertmail (id, tenant_id, alert_id, person_id, refused, tries, next_at, error)
  SELECT gen_random_uuid(), %(tenant)s, raised.id, p.id, raised.refused, 0, %(at)s, ''
    FROM raised, tenancy_membership m JOIN tenancy_person p ON p.id = m.person_id
   WHERE m.tenant_id = %(tenant)s AND m.role = 'admin' AND p.is_active AND raised.fresh
     AND NOT m.awaits_confirmation
  ON CONFLICT (tenant_id, alert_id, person_id, refused) DO NOTHING)
SELECT {_TOLD} FROM raised WHERE fresh ORDER BY threshold, id"""  # noqa: S608 - our own texts
_COLUMNS: Final = """(id, tenant_id, account_id, kind, window_start, window_end, threshold, limit_usd,
                      spent_usd, held_usd, wanted_usd, at)"""
_CROSSED: Final = f"""
WITH raised AS (
  INSERT INTO budgets_alert {_COLUMNS}
  SELECT w.id, %(tenant)s, a.id, a.kind, a.window_start, a.window_end, w.threshold, %(limit)s::numeric,
         %(used)s::numeric, %(reserved)s::numeric, NULL, %(at)s
    FROM budgets_account a, unnest(%(ids)s::uuid[], %(thresholds)s::int[]) AS w(id, threshold)
   WHERE a.tenant_id = %(tenant)s AND a.id = %(account)s
  ON CONFLICT (tenant_id, account_id, threshold) DO NOTHING
  RETURNING {_ROW}, false AS refused, true AS fresh)
{_LETTERS}"""  # noqa: S608 - our own texts
_REFUSED: Final = f"""
WITH raised AS (
  INSERT INTO budgets_alert AS known {_COLUMNS}
  SELECT gen_random_uuid(), %(tenant)s, a.id, a.kind, a.window_start, a.window_end,
         least({FULL}, floor((l.used + l.reserved) * 100 / l."limit"))::int, l."limit", l.used, l.reserved,
         %(wanted)s::numeric, %(at)s
    FROM budgets_account a JOIN budgets_line l ON l.tenant_id = a.tenant_id AND l.account_id = a.id
   WHERE a.tenant_id = %(tenant)s AND a.kind IN ('tenant_day', 'tenant_month')
     AND a.window_start <= %(at)s AND a.window_end > %(at)s
     AND l."limit" - l.used - l.reserved < %(wanted)s AND l."limit" > 0
     AND (l."limit" - l.used - l.reserved) * {LAST_PART} < l."limit"
     AND NOT EXISTS (SELECT 1 FROM budgets_alert o WHERE o.tenant_id = a.tenant_id AND o.account_id = a.id
                        AND o.wanted_usd IS NOT NULL)
  ON CONFLICT (tenant_id, account_id, threshold) DO UPDATE
     SET wanted_usd = coalesce(known.wanted_usd, excluded.wanted_usd)
  RETURNING {_ROW}, true AS refused, known.xmax = 0 OR known.threshold < {FULL} AS fresh)
{_LETTERS}"""  # noqa: S608 - our own texts


def tell_squared(
    tenant_id: UUID,
    lines: Mapping[UUID, LineState],
    squarings: Iterable[TrancheReconciliation],
    at: datetime,
    cursor: Cursor,
) -> None:
    """Write the alerts of what squarings do to the tenant's locked lines. Joins the transaction."""
    after: dict[UUID, LineState] = {}
    for squaring in squarings:
        for account in (squaring.tranche.day, squaring.tranche.month):
            line = after.get(account, lines[account])
            after[account] = line._replace(
                used=line.used + squaring.booked, reserved=line.reserved + squaring.held_more
            )
    for account, line in after.items():
        tell_line(tenant_id, account, before=lines[account], after=line, at=at, cursor=cursor)


def tell_line(
    tenant_id: UUID, account: UUID, *, before: LineState, after: LineState, at: datetime, cursor: Cursor
) -> None:
    """Write the alerts that a change of one window's line calls for: far from any threshold no statement.
    Joins the transaction."""
    if newly_reached(before, after):
        tell_standing(tenant_id, account, after, at, cursor)


def tell_standing(tenant_id: UUID, account: UUID, after: LineState, at: datetime, cursor: Cursor) -> None:
    """Write the alerts of every threshold that a window's line has reached; those told before stay as they
    were. Joins the transaction."""
    thresholds = compute_reached_thresholds(after)
    if not thresholds:
        return
    cursor.execute(
        _CROSSED,
        {
            "tenant": tenant_id, "account": account, "at": at, "limit": after.limit, "used": after.used,
            "reserved": after.reserved, "thresholds": list(thresholds),
            "ids": [fresh_id() for _ in thresholds],
        },
    )  # fmt: skip
    _tell_endpoints(tenant_id, at, cursor)


def tell_refused(tenant_id: UUID, wanted: Decimal, at: datetime, cursor: Cursor) -> None:
    """Note that the tenant's day or month could not bear `wanted` US$: near its end administrators are told
    once a window, with the share that is taken, also where the alert at that share was told before. A window
    that is full has said so itself. It closes nothing to others. Joins the transaction."""
    cursor.execute(_REFUSED, {"tenant": tenant_id, "wanted": wanted, "at": at})
    _tell_endpoints(tenant_id, at, cursor)


def _tell_endpoints(tenant_id: UUID, at: datetime, cursor: Cursor) -> None:
    """A message for each alert that the statement before has raised."""
    for alert, kind, start, end, threshold, limit, spent, held, refused in cursor.fetchall():
        data = {
            "alert": str(alert),
            "tenant": str(tenant_id),
            "window": kind.removeprefix("tenant_"),
            "window_start": start.isoformat(),
            "window_end": end.isoformat(),
            "threshold_percent": threshold,
            "limit_usd": format_decimal(limit),
            "spent_usd": format_decimal(spent),
            "held_usd": format_decimal(held),
            "refused": refused,
        }
        subject = f"alert:{alert}:refused" if refused else f"alert:{alert}"
        write_outgoing_message(tenant_id, BUDGET_ALERT, subject, data, at=at, cursor=cursor)

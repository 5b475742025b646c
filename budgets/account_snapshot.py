"""The account state that a posting needs, read in one statement.

The statement returns whether the run's account is open, its tranches, and the headroom of the tenant.
`BOOK` and `HEADROOM` are statements with a parser each, so that a caller can send them inside a psycopg
pipeline with its other statements and read the rows after the sync.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from budgets.core.amounts import ZERO
from budgets.core.dimension import Dimension
from budgets.core.posting import LineState
from budgets.core.tranche import Tranche, Windows, choose_current_tranche

Row = Sequence[Any]
_RUN: Final = """
SELECT 'run' AS what, a.id, a.parent_id AS day, NULL::uuid AS month, NULL::timestamptz AS starts,
       NULL::timestamptz AS ends, NULL::numeric AS lim, NULL::numeric AS used, NULL::numeric AS reserved,
       NULL::numeric AS held, (a.closed_at IS NOT NULL)::text AS word
  FROM budgets_account a WHERE a.id = %(run)s AND a.kind = 'run'
UNION ALL
SELECT 'tranche', t.id, t.day_id, t.month_id, t.starts_at, t.ends_at, NULL, t.used, t.reserved, t.held, NULL
  FROM budgets_tranche t WHERE t.tenant_id = %(tenant)s AND t.run_account_id = %(run)s AND t.closed_at IS NULL
UNION ALL
SELECT a.kind, a.id, NULL, NULL, a.window_start, a.window_end, l."limit", l.used, l.reserved, NULL, NULL
  FROM unnest(ARRAY['tenant_day', 'tenant_month']) AS k(kind)
 CROSS JOIN LATERAL (
       SELECT * FROM budgets_account w
        WHERE w.tenant_id = %(tenant)s AND w.kind = k.kind
          AND w.window_start <= coalesce(%(at)s::timestamptz, statement_timestamp())
        ORDER BY w.window_start DESC LIMIT 1) a
 CROSS JOIN LATERAL (
       SELECT * FROM budgets_line o
        WHERE o.tenant_id = %(tenant)s AND o.account_id = a.id AND o.dimension = 'cost_usd' LIMIT 1) l
 WHERE a.window_end > coalesce(%(at)s::timestamptz, statement_timestamp())"""
_LINES: Final = """
UNION ALL
SELECT 'line', l.id, NULL, NULL, NULL, NULL, l."limit", l.used, l.reserved, NULL, l.dimension
  FROM budgets_line l WHERE l.tenant_id = %(tenant)s AND l.account_id = %(run)s"""
# The LIMITs keep the planner from starting with the lines of all of the tenant's runs.
BOOK: Final = _RUN
HEADROOM: Final = _RUN + _LINES


class AccountSnapshot(NamedTuple):
    """A run's account at the start of a commit.

    `windows` is None before the tenant's first spending of the day. `parent` is the account that a lane
    draws on, which holds the tenant's money for it.

    Valid for as long as the reader holds the run (its row or its account is locked): one writer per run.
    """

    run: UUID
    closed: bool
    tranches: tuple[Tranche, ...]
    windows: Windows | None
    parent: UUID | None = None

    def tenant_cost(self, at: datetime) -> Decimal | None:
        """Return how much the run may still reserve under its tenant's ceilings at `at`, in US$.

        The unused rest of the run's own tranche is included. None: no ceiling applies, the day's account is
        not opened yet, or the account is a lane's, which draws on its parent.
        """
        if self.windows is None or self.parent is not None:
            return None
        lefts = [left for left in (self.windows.day_left, self.windows.month_left) if left is not None]
        if not lefts:
            return None
        now = choose_current_tranche(self.tranches, at)
        own = now.held - now.used - now.reserved if now else ZERO
        return min(lefts) + own


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """The amounts left on every line of a run and of its tenant's day and month (None: unlimited)."""

    left: Mapping[Dimension, Decimal | None]
    tenant_day: Decimal | None
    tenant_month: Decimal | None
    tenant_cost: Decimal | None
    book: AccountSnapshot


def build_snapshot_parameters(tenant_id: UUID, run_id: UUID, at: datetime | None = None) -> dict[str, object]:
    """Build the parameters of `BOOK` and `HEADROOM`.

    Without `at` the database's clock selects the current windows.
    """
    return {"tenant": tenant_id, "run": run_id, "at": at}


def read_book(run_id: UUID, rows: Sequence[Row]) -> AccountSnapshot | None:
    """Build the book from the rows of `BOOK`; None if the run has no account."""
    closed: bool | None = None
    parent: UUID | None = None
    tranches: list[Tranche] = []
    windows: dict[str, Row] = {}
    for row in rows:
        match row[0]:
            case "run":
                closed, parent = row[10] == "true", row[2]
            case "tranche":
                tranches.append(_parse_tranche_row(row))
            case "tenant_day" | "tenant_month":
                windows[row[0]] = row
    if closed is None:
        return None
    return AccountSnapshot(
        run=run_id,
        closed=closed,
        tranches=tuple(tranches),
        windows=_parse_window_rows(windows),
        parent=parent,
    )


def read_headroom(run_id: UUID, rows: Sequence[Row], at: datetime) -> Headroom | None:
    """Build the headroom from the rows of `HEADROOM`; None if the run has no account."""
    book = read_book(run_id, rows)
    if book is None:
        return None
    left = {Dimension(row[10]): _parse_line_row(row).left for row in rows if row[0] == "line"}
    return Headroom(
        left={dimension: left[dimension] for dimension in Dimension if dimension in left},
        tenant_day=book.windows.day_left if book.windows else None,
        tenant_month=book.windows.month_left if book.windows else None,
        tenant_cost=book.tenant_cost(at),
        book=book,
    )


def _parse_tranche_row(row: Row) -> Tranche:
    _, id_, day, month, starts, ends, _, used, reserved, held, _ = row
    return Tranche(
        id=id_, day=day, month=month, starts_at=starts, ends_at=ends, held=held, used=used, reserved=reserved
    )


def _parse_window_rows(rows: Mapping[str, Row]) -> Windows | None:
    day, month = rows.get("tenant_day"), rows.get("tenant_month")
    if day is None or month is None:
        return None
    return Windows(
        day=day[1],
        month=month[1],
        starts_at=day[4],
        ends_at=min(day[5], month[5]),
        day_left=_parse_line_row(day).left,
        month_left=_parse_line_row(month).left,
        day_limit=day[6],
        month_limit=month[6],
        over=_parse_line_row(day).over or _parse_line_row(month).over,
    )


def _parse_line_row(row: Row) -> LineState:
    return LineState(limit=row[6], used=row[7], reserved=row[8])

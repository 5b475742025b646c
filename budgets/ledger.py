"""The statements that move lines and tranches and write entries: one for a posting, all or nothing
(R-BUDGET-2, 3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import psycopg

from budgets.core.dimension import Dimension
from budgets.core.entry import EntryRow, amounts_text, seal
from budgets.core.posting import Draft, LineState
from budgets.core.vector import ZERO
from tenancy.ids import fresh_id

Cursor = psycopg.Cursor[Any]

# `misfit` reads before anything is changed, so a refusal leaves nothing behind even where nobody rolls back;
# the conditions in the UPDATEs hold against a second writer who changed a line in between.
APPLY: Final = """
WITH want AS MATERIALIZED (
  SELECT * FROM unnest(%(accounts)s::uuid[], %(dimensions)s::text[], %(used)s::numeric[],
                       %(reserved)s::numeric[], %(checks)s::numeric[])
                  AS w(account_id, dimension, used, reserved, asked)
), misfit AS MATERIALIZED (
  SELECT l.account_id, l.dimension, l."limit", l.used, l.reserved
    FROM want w JOIN budgets_line l
      ON l.tenant_id = %(tenant)s AND l.account_id = w.account_id AND l.dimension = w.dimension
   WHERE l.account_id = ANY(%(accounts)s::uuid[]) AND l.used + l.reserved + w.asked > l."limit"
), moved AS (
  UPDATE budgets_line l SET used = l.used + w.used, reserved = l.reserved + w.reserved FROM want w
   WHERE l.tenant_id = %(tenant)s AND l.account_id = w.account_id AND l.dimension = w.dimension
     AND l.account_id = ANY(%(accounts)s::uuid[]) AND NOT EXISTS (SELECT FROM misfit)
     AND (w.asked IS NULL OR l."limit" IS NULL OR l.used + l.reserved + w.asked <= l."limit")
  RETURNING 1
), drawn AS (
  UPDATE budgets_tranche t
     SET held = t.held + d.held, used = t.used + d.used, reserved = t.reserved + d.reserved,
         booked = t.booked + d.booked, closed_at = CASE WHEN d.closes THEN %(at)s::timestamptz END
    FROM unnest(%(tranches)s::uuid[], %(t_held)s::numeric[], %(t_used)s::numeric[], %(t_reserved)s::numeric[],
                %(t_booked)s::numeric[], %(t_closes)s::bool[]) AS d(id, held, used, reserved, booked, closes)
   WHERE t.id = d.id AND t.closed_at IS NULL AND NOT EXISTS (SELECT FROM misfit)
     AND t.held + d.held >= t.used + d.used + t.reserved + d.reserved
  RETURNING 1
), written AS (
  INSERT INTO budgets_entry (id, tenant_id, run_id, account_id, month_id, tranche_id, effect_id, cause,
                             amounts, unknown, price_version, at, digest, marks)
  SELECT e.id, %(tenant)s, %(run)s, e.account_id, e.month_id, e.tranche_id, e.effect_id, e.cause, e.amounts,
         e.unknown, e.price_version, %(at)s, e.digest, e.marks
    FROM unnest(%(e_ids)s::uuid[], %(e_accounts)s::uuid[], %(e_months)s::uuid[], %(e_tranches)s::uuid[],
                %(e_effects)s::text[], %(e_causes)s::text[], %(e_amounts)s::text[], %(e_unknown)s::bool[],
                %(e_prices)s::text[], %(e_digests)s::bytea[], %(e_marks)s::bytea[])
      AS e(id, account_id, month_id, tranche_id, effect_id, cause, amounts, unknown, price_version, digest,
           marks)
   WHERE NOT EXISTS (SELECT FROM misfit)
  RETURNING 1
)
SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM drawn), (SELECT count(*) FROM written),
       m.account_id, m.dimension, m."limit", m.used, m.reserved
  FROM (SELECT 1) once LEFT JOIN misfit m ON true"""

# Locked in the order run line, day, month (THE-RING), several days before any month.
LOCK: Final = """
SELECT l.account_id, l."limit", l.used, l.reserved
  FROM budgets_line l JOIN budgets_account a ON a.id = l.account_id
 WHERE l.tenant_id = %(tenant)s AND l.account_id = ANY(%(accounts)s::uuid[]) AND l.dimension = 'cost_usd'
 ORDER BY a.kind, a.window_start, a.id
   FOR NO KEY UPDATE OF l"""

OPEN_TRANCHE: Final = """
INSERT INTO budgets_tranche (id, tenant_id, run_account_id, day_id, month_id, starts_at, ends_at, held, used,
                             reserved, booked, opened_at)
VALUES (%(id)s, %(tenant)s, %(run)s, %(day)s, %(month)s, %(starts)s, %(ends)s, 0, 0, 0, 0, %(at)s)"""

HOLD_ACCOUNT: Final = "SELECT 1 FROM budgets_account WHERE id = %(run)s AND kind = 'run' FOR NO KEY UPDATE"


@dataclass(slots=True)
class Sheet:
    """One posting on its way to `APPLY`: changes of lines and tranches, and the entries that say so."""

    tenant: UUID
    run: UUID | None
    at: datetime
    lines: dict[tuple[UUID, str], tuple[Decimal, Decimal, Decimal | None]] = field(default_factory=dict)
    tranches: list[tuple[UUID, Decimal, Decimal, Decimal, Decimal, bool]] = field(default_factory=list)
    rows: list[tuple[EntryRow, str, bytes]] = field(default_factory=list)

    def line(
        self,
        account: UUID,
        dimension: Dimension,
        used: Decimal,
        reserved: Decimal,
        asked: Decimal | None = None,
    ) -> None:
        """Change a line; `asked` is what must fit beside its present use, None where nothing new is asked.

        Two tranches may share a month: changes of one line add up to one net change.
        """
        key = (account, dimension.value)
        if (before := self.lines.get(key)) is not None:
            asked = (
                None
                if before[2] is None and asked is None
                else _asked(*before) + _asked(used, reserved, asked)
            )
            used, reserved = used + before[0], reserved + before[1]
        self.lines[key] = (used, reserved, asked)

    def tranche(
        self,
        tranche: UUID,
        *,
        held: Decimal = ZERO,
        used: Decimal = ZERO,
        reserved: Decimal = ZERO,
        booked: Decimal = ZERO,
        closes: bool = False,
    ) -> None:
        """Change a tranche."""
        self.tranches.append((tranche, held, used, reserved, booked, closes))

    def entry(
        self, draft: Draft, account: UUID, *, month: UUID | None = None, tranche: UUID | None = None
    ) -> None:
        """Write a draft as an entry of `account` (and `month`)."""
        row = EntryRow(
            id=fresh_id(),
            tenant_id=self.tenant,
            run_id=self.run,
            account_id=account,
            month_id=month,
            tranche_id=tranche,
            effect_id=draft.effect_id,
            cause=draft.cause.value,
            amounts=amounts_text(draft),
            unknown=draft.unknown,
            price_version=draft.price_version,
            at=self.at,
        )
        self.rows.append((row, *seal(row)))

    @property
    def digests(self) -> dict[str, str]:
        """The entries as a trace binds them: ``entry:<id>`` → digest."""
        return {f"entry:{row.id}": digest for row, digest, _ in self.rows}

    def send(self, cursor: Cursor) -> None:
        """Execute `APPLY`; inside a pipeline this only queues it."""
        cursor.execute(APPLY, self._parameters(), prepare=True)

    def outcome(self, row: Sequence[Any]) -> bool:
        """Whether everything was written, by the first row of the answer."""
        return tuple(row[:3]) == (len(self.lines), len(self.tranches), len(self.rows))

    def _parameters(self) -> dict[str, object]:
        accounts, dimensions = _columns(list(self.lines), 2)
        used, reserved, checks = _columns(list(self.lines.values()), 3)
        tranches, t_held, t_used, t_reserved, t_booked, t_closes = _columns(self.tranches, 6)
        rows = [row for row, _, _ in self.rows]
        return {
            "tenant": self.tenant,
            "run": self.run,
            "at": self.at,
            "accounts": accounts,
            "dimensions": dimensions,
            "used": used,
            "reserved": reserved,
            "checks": checks,
            "tranches": tranches,
            "t_held": t_held,
            "t_used": t_used,
            "t_reserved": t_reserved,
            "t_booked": t_booked,
            "t_closes": t_closes,
            "e_ids": [row.id for row in rows],
            "e_accounts": [row.account_id for row in rows],
            "e_months": [row.month_id for row in rows],
            "e_tranches": [row.tranche_id for row in rows],
            "e_effects": [row.effect_id for row in rows],
            "e_causes": [row.cause for row in rows],
            "e_amounts": [row.amounts for row in rows],
            "e_unknown": [row.unknown for row in rows],
            "e_prices": [row.price_version for row in rows],
            "e_digests": [bytes.fromhex(digest) for _, digest, _ in self.rows],
            "e_marks": [marks for _, _, marks in self.rows],
        }


def locked_lines(cursor: Cursor, tenant_id: UUID, accounts: Iterable[UUID]) -> dict[UUID, LineState]:
    """Lock the US$ lines of `accounts` in the order of the chain; each as it stands now."""
    cursor.execute(LOCK, {"tenant": tenant_id, "accounts": list(accounts)}, prepare=True)
    return {
        account: LineState(limit=limit, used=used, reserved=reserved)
        for account, limit, used, reserved in cursor.fetchall()
    }


def _asked(used: Decimal, reserved: Decimal, asked: Decimal | None) -> Decimal:
    return used + reserved if asked is None else asked


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[number] for row in rows] for number in range(width)]

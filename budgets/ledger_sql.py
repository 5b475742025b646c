"""The statements that move lines and tranches and write entries (R-BUDGET-2, R-BUDGET-3)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final
from uuid import UUID

import psycopg

from budgets.core.amounts import ZERO
from budgets.core.dimension import Dimension
from budgets.core.entry import COLUMNS, EntryRow, amounts_text, seal_entry
from budgets.core.errors import LedgerMoved
from budgets.core.posting import Draft, LineState
from tenancy.db.ids import fresh_id
from tenancy.db.statement_batch import Batch, Touched
from traces.core.canonical import text_of

Cursor = psycopg.Cursor[Any]

_MOVE_LINES: Final = """
UPDATE budgets_line l SET used = l.used + w.used, reserved = l.reserved + w.reserved
  FROM (VALUES {rows}) AS w(account_id, dimension, used, reserved, asked)
 WHERE l.tenant_id = %s AND l.account_id = ANY(%s::uuid[])
   AND l.account_id = w.account_id AND l.dimension = w.dimension
   AND (w.asked IS NULL OR l."limit" IS NULL OR l.used + l.reserved + w.asked <= l."limit")
RETURNING l.account_id || ':' || l.dimension AS key"""
_LINE: Final = "(%s::uuid, %s::varchar, %s::numeric, %s::numeric, %s::numeric)"

MOVE_TRANCHE: Final = """
UPDATE budgets_tranche t
   SET held = t.held + w.held, used = t.used + w.used, reserved = t.reserved + w.reserved,
       booked = t.booked + w.booked, closed_at = %s::timestamptz
  FROM (SELECT %s::numeric AS held, %s::numeric AS used, %s::numeric AS reserved, %s::numeric AS booked) w
 WHERE t.id = %s AND t.closed_at IS NULL
   AND t.held + w.held >= t.used + w.used + t.reserved + w.reserved
RETURNING t.id::text AS key"""

_ENTRY_COLUMNS: Final = (*COLUMNS, "digest", "marks")
ENTRIES: Final = f"INSERT INTO budgets_entry ({', '.join(_ENTRY_COLUMNS)}) VALUES "  # noqa: S608 - our own columns

STANDING: Final = """
SELECT account_id, dimension, "limit", used, reserved FROM budgets_line
 WHERE tenant_id = %(tenant)s AND account_id = ANY(%(accounts)s::uuid[])"""

# Locked in the order run line, day, month (docs/ring.md), several days before any month.
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
class PostingSheet:
    """One posting on its way to the database: changes of lines and tranches, and the entries that say so."""

    tenant: UUID
    run: UUID | None
    at: datetime
    lines: dict[tuple[UUID, str], tuple[Decimal, Decimal, Decimal | None]] = field(default_factory=dict)
    tranches: list[tuple[object, ...]] = field(default_factory=list)
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
                else _resolve_wanted_amount(*before) + _resolve_wanted_amount(used, reserved, asked)
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
        amounts = (str(amount) for amount in (held, used, reserved, booked))
        self.tranches.append((self.at if closes else None, *amounts, tranche))

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
        self.rows.append((row, *seal_entry(row)))

    @property
    def digests(self) -> dict[str, str]:
        """The entries as a trace binds them: ``entry:<id>`` → digest."""
        return {f"entry:{text_of(row.id)}": digest for row, digest, _ in self.rows}

    def send(self, cursor: Cursor, batch: Batch | None = None) -> "SentSheet":
        """Write the sheet; with a `batch` it rides in that, which the caller sends."""
        riding = batch or Batch(cursor)
        lines = (
            riding.touch(move_lines(len(self.lines)), self._lines(), len(self.lines))
            if self.lines
            else Touched()
        )
        tranches = [riding.touch(MOVE_TRANCHE, tranche, 1) for tranche in self.tranches]
        rows = [(*row, bytes.fromhex(digest), marks) for row, digest, marks in self.rows]
        riding.insert(ENTRIES, rows)
        if batch is None:
            riding.send()
        return SentSheet(sheet=self, cursor=cursor, lines=lines, tranches=tranches)

    def _lines(self) -> list[object]:
        values: list[object] = []
        # Texts, each account's once: the client writes a Decimal or a UUID down three times as slowly.
        texts: dict[str, None] = {}
        text, written = "", None
        for (account, dimension), (used, reserved, asked) in self.lines.items():
            if account is not written:
                text, written = text_of(account), account
                texts[text] = None
            values += (
                text,
                dimension,
                str(used),
                str(reserved),
                None if asked is None else str(asked),
            )
        # Said twice, so that no plan begins with the lines of all of the tenant's runs.
        accounts = "{" + ",".join(texts) + "}"
        return [*values, self.tenant, accounts]


@cache
def move_lines(rows: int) -> str:
    """The statement that changes so many lines; one that cannot take its change is left out."""
    return _MOVE_LINES.format(rows=", ".join([_LINE] * rows))


@dataclass(slots=True)
class SentSheet:
    """A sheet that was sent; what came of it is known once its batch was."""

    sheet: PostingSheet
    cursor: Cursor
    lines: Touched
    tranches: list[Touched]

    def find_refused_lines(self) -> list[tuple[UUID, str]]:
        """The lines that did not take their change, in the sheet's order. Raises LedgerMoved for a
        tranche.
        """
        taken = self.lines.keys
        missing = (
            [key for key in self.sheet.lines if f"{key[0]}:{key[1]}" not in taken]
            if len(taken) != len(self.sheet.lines)
            else []
        )
        if not missing and any(len(tranche.keys) != 1 for tranche in self.tranches):
            raise LedgerMoved(run=str(self.sheet.run), detail="a tranche no longer covers it")
        return missing

    def load_line_states(
        self, missing: Iterable[tuple[UUID, str]], cursor: Cursor | None = None
    ) -> dict[tuple[UUID, str], LineState]:
        """Lines as they stand, to say why they refused."""
        asking = cursor or self.cursor
        accounts = list(dict.fromkeys(account for account, _ in missing))
        asking.execute(STANDING, {"tenant": self.sheet.tenant, "accounts": accounts})
        return {
            (account, dimension): LineState(limit=limit, used=used, reserved=reserved)
            for account, dimension, limit, used, reserved in asking.fetchall()
        }

    def check_written(self) -> None:
        """Be sure that all of it was written. Raises LedgerMoved."""
        if missing := self.find_refused_lines():
            raise LedgerMoved(run=str(self.sheet.run), detail=f"{missing[0][1]} refused")


def locked_lines(cursor: Cursor, tenant_id: UUID, accounts: Iterable[UUID]) -> dict[UUID, LineState]:
    """Lock the US$ lines of `accounts` in the order of the chain; each as it stands now."""
    cursor.execute(LOCK, {"tenant": tenant_id, "accounts": list(accounts)}, prepare=True)
    return {
        account: LineState(limit=limit, used=used, reserved=reserved)
        for account, limit, used, reserved in cursor.fetchall()
    }


def _resolve_wanted_amount(used: Decimal, reserved: Decimal, asked: Decimal | None) -> Decimal:
    return used + reserved if asked is None else asked

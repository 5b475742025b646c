"""Accounts, effects and postings for tests."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from time import sleep
from typing import Any
from uuid import UUID

import psycopg

from budgets.account_snapshot import AccountSnapshot
from budgets.actions import (
    Posting,
    Reserve,
    Settle,
    close_run_account,
    open_run_account,
    post_to_ledger,
    set_ceilings,
)
from budgets.core.ceilings import Ceilings
from budgets.ledger_sql import Cursor
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
Figures = Mapping[str, str | int]


def amounts(figures: Figures) -> dict[str, Decimal]:
    """Decimals from what is quick to write."""
    return {name: Decimal(figure) for name, figure in figures.items()}


@contextmanager
def inside(tenant_id: UUID) -> Iterator[Cursor]:
    """A transaction of the tenant and a raw cursor in it."""
    with tenant_transaction(tenant_id):
        yield raw_cursor()


@dataclass
class Purse:
    """A run's account with short verbs, each in a transaction of its own. Effects are numbered by
    themselves."""

    tenant: UUID
    run: UUID
    held: dict[str, dict[str, Decimal]] = field(default_factory=dict)

    def reserve(self, figures: Figures, *, at: datetime = NOON) -> tuple[str, Posting]:
        """Reserve for a new effect: its id and the answer."""
        effect = fresh_id().hex
        posting = self.post(reserves=(Reserve(effect_id=effect, amounts=amounts(figures)),), at=at)
        if posting.refused is None:
            self.held[effect] = amounts(figures)
        return effect, posting

    def settle(self, effect: str, figures: Figures, *, at: datetime = NOON) -> Posting:
        """Settle an effect with what it took."""
        return self.post(settles=(self.settlement(effect, figures),), at=at)

    def settlement(self, effect: str, figures: Figures) -> Settle:
        """The settlement of an effect reserved here."""
        return Settle(effect_id=effect, reserved=self.held.pop(effect), actual=amounts(figures))

    def post(
        self,
        *,
        settles: tuple[Settle, ...] = (),
        reserves: tuple[Reserve, ...] = (),
        at: datetime = NOON,
        book: AccountSnapshot | None = None,
    ) -> Posting:
        """One posting in one transaction."""
        with inside(self.tenant) as cursor:
            return post_to_ledger(
                self.tenant, self.run, settles=settles, reserves=reserves, at=at, cursor=cursor, book=book
            )

    def close(self, *, at: datetime = NOON) -> Posting:
        """Close the account."""
        with inside(self.tenant):
            return close_run_account(self.tenant, self.run, at)


def open_purse(tenant_id: UUID, limits: Figures | None = None, *, at: datetime = NOON) -> Purse:
    """A run's account with these limits; none without."""
    run = fresh_id()
    with inside(tenant_id):
        open_run_account(tenant_id, run, amounts(limits or {}), at)
    return Purse(tenant=tenant_id, run=run)


def ceilings(
    tenant_id: UUID,
    *,
    daily: str | None = None,
    monthly: str | None = None,
    per_run: str | None = None,
    tranche: str | None = None,
    by: UUID | None = None,
    at: datetime = NOON,
) -> None:
    """Set the tenant's ceilings; what is not named is without."""
    figures = {"per_run_usd": per_run, "daily_usd": daily, "monthly_usd": monthly, "tranche_usd": tranche}
    stated = {name: Decimal(text) if text is not None else None for name, text in figures.items()}
    with inside(tenant_id):
        set_ceilings(tenant_id, Ceilings.model_validate(stated), by=by, reason="a test", at=at)


def until_it_waits(watcher: "psycopg.Connection[Any]", holder: Cursor, other: "Future[Any]") -> None:
    """Return once another connection waits for what the holder's transaction has locked, or has ended without
    waiting."""
    while not other.done():
        row = watcher.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))",
            [holder.connection.info.backend_pid],
        ).fetchone()
        if row is not None and row[0]:
            return
        sleep(0.01)

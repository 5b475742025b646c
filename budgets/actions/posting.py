"""`queue_post`: settle the last effect and reserve the next in one database round trip.

Given an `AccountSnapshot`, a posting consists of parts of one statement, which are sent in the caller's
batch. Its entries and their digests are known at once, for the trace's binds. A batch that succeeds has
taken them all; for a batch that was rolled back, `PostHandle.why` says which line refused. If the run's
tranche is short or has to be squared (about one model call in eight), `queue_post` itself first locks the
tenant's lines and waits for that answer.

Spec: R-BUDGET-2, docs/ring.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

import psycopg

from budgets.account_snapshot import BOOK, AccountSnapshot, build_snapshot_parameters, read_book
from budgets.actions.alerts import tell_squared
from budgets.actions.ceilings import ensure_tenant_windows, newest_ceilings
from budgets.core.amounts import NOTHING, Vector
from budgets.core.dimension import Dimension
from budgets.core.errors import AccountClosed, AccountMissing, LedgerMoved, ReservationUnknown
from budgets.core.posting import (
    COST,
    Cause,
    Draft,
    Plan,
    Refusal,
    Reserve,
    Settle,
    plan_posting,
    refused_by,
)
from budgets.core.tranche import (
    Tranche,
    TrancheChanges,
    TrancheReconciliation,
    assign_amounts_to_tranches,
    choose_current_tranche,
    chunk_for,
    has_spare,
    in_flight,
    is_covered_by_tranche,
    rebalance_tranches,
)
from budgets.ledger_sql import HOLD_ACCOUNT, OPEN_TRANCHE, Cursor, PostingSheet, SentSheet, locked_lines
from tenancy.db.ids import fresh_id
from tenancy.db.statement_batch import Batch

_ORIGINS: Final = """
SELECT effect_id, tranche_id FROM budgets_entry
 WHERE tenant_id = %(tenant)s AND effect_id = ANY(%(effects)s::text[]) AND cause = 'reserve'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """The result of a posting. `overrun` is the amount used beyond the reservations.

    `entries`: ``entry:<id>`` to digest, for the trace's binds; empty when the posting was refused.
    """

    entries: Mapping[str, str] = field(default_factory=dict)
    refused: Refusal | None = None
    overrun: Vector = NOTHING


@dataclass(slots=True)
class PostHandle:
    """A posting that was sent. `entries` and `overrun` are known at once.

    `refused` is known at once only if a tenant's line refused.
    """

    run: UUID
    plan: Plan
    sent: SentSheet | None = None
    refused: Refusal | None = None

    @property
    def entries(self) -> Mapping[str, str]:
        """The entries that were sent: ``entry:<id>`` → digest."""
        return {} if self.sent is None else self.sent.sheet.digests

    def result(self) -> Posting:
        """Return the result; inside a pipeline, only after its sync.

        Raises: LedgerMoved when another writer changed the account.
        """
        if self.refused is not None:
            return Posting(refused=self.refused)
        if self.sent is None:
            return Posting(overrun=self.plan.overrun)
        if missing := self.sent.find_refused_lines():
            return Posting(refused=self._refusal(self.sent, missing))
        return Posting(entries=self.sent.sheet.digests, overrun=self.plan.overrun)

    def why(self, cursor: Cursor) -> Refusal:
        """Return the line that refused a posting that was rolled back, judged by the current lines.

        Raises: LedgerMoved when no line refuses: another writer changed the account.
        """
        if self.sent is None:
            raise LedgerMoved(run=str(self.run), detail="nothing was sent")
        return self._refusal(self.sent, list(self.sent.sheet.lines), cursor)

    def _refusal(
        self, sent: SentSheet, missing: list[tuple[UUID, str]], cursor: Cursor | None = None
    ) -> Refusal:
        run, standing = self.run, sent.load_line_states(missing, cursor)
        for dimension in Dimension:
            if (run, dimension.value) in missing and (
                line := standing.get((run, dimension.value))
            ) is not None:
                said = refused_by(dimension, line, self.plan.changes[dimension])
                if said is not None:
                    return said
        raise LedgerMoved(run=str(run), detail="a line or tranche did not take its change")


def post_to_ledger(
    tenant_id: UUID,
    run_id: UUID,
    *,
    settles: tuple[Settle, ...],
    reserves: tuple[Reserve, ...],
    at: datetime,
    cursor: Cursor,
    book: AccountSnapshot | None = None,
) -> Posting:
    """Settle and reserve, all or nothing, in the caller's transaction (R-BUDGET-2, R-BUDGET-6).

    A savepoint of its own makes a refusal leave no changes. Not for use inside a pipeline. Without `book`
    the account is locked and read first.

    Raises: AccountMissing, AccountClosed, ReservationUnknown, LedgerMoved, DimensionUnknown, AmountInvalid.
    """
    posting = Posting()
    with cursor.connection.transaction() as savepoint:
        posting = queue_post(
            tenant_id, run_id, settles=settles, reserves=reserves, at=at, cursor=cursor, book=book
        ).result()
        if posting.refused is not None:
            raise psycopg.Rollback(savepoint)
    return posting


def queue_post(
    tenant_id: UUID,
    run_id: UUID,
    *,
    settles: tuple[Settle, ...],
    reserves: tuple[Reserve, ...],
    at: datetime,
    cursor: Cursor,
    book: AccountSnapshot | None = None,
    batch: Batch | None = None,
    rest: bool = False,
) -> PostHandle:
    """Send a posting; see the module docstring.

    The entries are sent in `batch`, if one is given; the caller sends the batch before it asks for the
    result. `rest`: the run will wait and returns to its tenant the money held ahead.

    If the run's line refuses, parts of the posting may be written: the caller rolls back to its savepoint.

    Raises: as `post_to_ledger`, but LedgerMoved only from `result()`.
    """
    plan = plan_posting(settles, reserves)
    if not plan.drafts and not rest:
        return PostHandle(run=run_id, plan=plan)
    book = book or held_book(tenant_id, run_id, at, cursor)
    rest = rest and has_spare(book.tranches)
    if not plan.drafts and not rest:
        return PostHandle(run=run_id, plan=plan)
    if book.closed:
        raise AccountClosed(run=str(run_id))
    sheet = PostingSheet(tenant=tenant_id, run=run_id, at=at)
    for dimension, change in plan.changes.items():
        sheet.line(run_id, dimension, change.used, change.reserved, change.check)
    homes: dict[str, UUID | None] = {}
    squarings: list[TrancheReconciliation] = []
    # A lane's parent already holds its money on the tenant's lines; holding it here too would count it twice.
    if book.parent is None and (plan.money or plan.wanted or rest):
        homes = _load_origin_tranches(tenant_id, book, plan, cursor)
        drawn = assign_amounts_to_tranches(plan, book.tranches, at, homes)
        over = book.windows is not None and book.windows.over
        if not rest and is_covered_by_tranche(drawn, book.tranches, at, over=over):
            _queue_tranche_updates(sheet, drawn)
        else:
            squarings, refused = _lock_and_rebalance_tranches(
                cursor, tenant_id, book=book, plan=plan, drawn=drawn, at=at, rest=rest
            )
            if refused is not None:
                return PostHandle(run=run_id, plan=plan, refused=refused)
    _queue_run_entries(sheet, plan, homes, _choose_tranche_id(book, squarings, at))
    for squaring in squarings:
        book_squaring(sheet, squaring, asked=bool(plan.wanted) and squaring.tranche.covers(at))
    return PostHandle(run=run_id, plan=plan, sent=sheet.send(cursor, batch))


def held_book(tenant_id: UUID, run_id: UUID, at: datetime, cursor: Cursor) -> AccountSnapshot:
    """Lock the run's account, then read its book.

    Raises: AccountMissing.
    """
    values = build_snapshot_parameters(tenant_id, run_id, at)
    cursor.execute(HOLD_ACCOUNT, {"run": run_id}, prepare=True)
    if cursor.fetchone() is None:
        raise AccountMissing(run=str(run_id))
    cursor.execute(BOOK, values, prepare=True)
    book = read_book(run_id, cursor.fetchall())
    if book is None:
        raise AccountMissing(run=str(run_id))
    return book


def book_squaring(sheet: PostingSheet, squaring: TrancheReconciliation, *, asked: bool) -> None:
    """Add a squaring to the sheet: the tranche, the tenant's day and month, and the ledger entry.

    `asked`: the tranche wants additional money, so its lines may refuse. Without `asked`, an overrun of an
    older day's call is booked whatever is left on the lines.
    """
    tranche, (reserved, used) = squaring.tranche, squaring.drawn
    sheet.tranche(
        tranche.id,
        held=squaring.held_more,
        used=used - squaring.booked,
        reserved=reserved,
        booked=squaring.booked,
        closes=squaring.closes,
    )
    if not (squaring.booked or squaring.held_more):
        return
    more = squaring.booked + squaring.held_more
    for account in (tranche.day, tranche.month):
        sheet.line(account, COST, squaring.booked, squaring.held_more, more if asked and more > 0 else None)
    draft = Draft(
        cause=squaring.cause,
        effect_id=None,
        used=Vector.of({COST: squaring.booked}).nonzero(),
        reserved=Vector.of({COST: squaring.held_more}).nonzero(),
    )
    sheet.entry(draft, tranche.day, month=tranche.month, tranche=tranche.id)


def _queue_tranche_updates(sheet: PostingSheet, drawn: TrancheChanges) -> None:
    for tranche, (reserved, used) in drawn.by_tranche.items():
        if tranche is not None:
            sheet.tranche(tranche, used=used, reserved=reserved)


def _queue_run_entries(
    sheet: PostingSheet, plan: Plan, homes: Mapping[str, UUID | None], home: UUID | None
) -> None:
    """Add the run's own entries to the sheet; entries that move money name the tranche they draw on."""
    for draft in plan.drafts:
        tranche = None
        if COST in draft.used or COST in draft.reserved:
            tranche = home if draft.cause is Cause.RESERVE else (homes.get(draft.effect_id or "") or home)
        sheet.entry(draft, sheet.run or sheet.tenant, tranche=tranche)


def _choose_tranche_id(
    book: AccountSnapshot, squarings: Iterable[TrancheReconciliation], at: datetime
) -> UUID | None:
    now = choose_current_tranche((squaring.tranche for squaring in squarings), at) or choose_current_tranche(
        book.tranches, at
    )
    return now.id if now else None


def _load_origin_tranches(
    tenant_id: UUID, book: AccountSnapshot, plan: Plan, cursor: Cursor
) -> dict[str, UUID | None]:
    """Find the tranche of each settlement that gives money back.

    Around midnight there may be two tranches in flight; then the ledger is queried.
    """
    effects = [effect for effect, held, _ in plan.money if held]
    if not effects:
        return {}
    candidates = in_flight(book.tranches)
    if len(candidates) == 1:
        return dict.fromkeys(effects, candidates[0].id)
    cursor.execute(_ORIGINS, {"tenant": tenant_id, "effects": effects}, prepare=True)
    known: dict[str, UUID | None] = dict(cursor.fetchall())
    for effect in effects:
        if known.get(effect) is None:
            raise ReservationUnknown(effect=effect)
    return known


def _lock_and_rebalance_tranches(
    cursor: Cursor,
    tenant_id: UUID,
    *,
    book: AccountSnapshot,
    plan: Plan,
    drawn: TrancheChanges,
    at: datetime,
    rest: bool,
) -> tuple[list[TrancheReconciliation], Refusal | None]:
    """Lock the lines of the chain and recompute the tranches (rare)."""
    windows = book.windows
    if windows is None or not windows.starts_at <= at < windows.ends_at:
        windows = ensure_tenant_windows(tenant_id, at, cursor)
    opened = Tranche(
        id=fresh_id(),
        day=windows.day,
        month=windows.month,
        starts_at=windows.starts_at,
        ends_at=windows.ends_at,
    )
    named = [book.run]
    for tranche in (*book.tranches, opened):
        named += [tranche.day, tranche.month]
    lines = locked_lines(cursor, tenant_id, dict.fromkeys(named))
    own = lines[book.run]
    change = plan.at(COST)
    left = None if own.limit is None else own.limit - own.used - own.reserved - change.used - change.reserved
    squarings, refused = rebalance_tranches(
        drawn,
        book.tranches,
        lines,
        opened=opened,
        at=at,
        chunk=chunk_for(own.limit, newest_ceilings(tenant_id, cursor).tranche_usd),
        run_left=left,
        rest=rest,
    )
    if refused is None and any(squaring.opens for squaring in squarings):
        _insert_tranche(tenant_id, book.run, opened, at, cursor)
    tell_squared(tenant_id, lines, squarings, at, cursor)
    return squarings, refused


def _insert_tranche(tenant_id: UUID, run_id: UUID, tranche: Tranche, at: datetime, cursor: Cursor) -> None:
    cursor.execute(
        OPEN_TRANCHE,
        {
            "id": tranche.id,
            "tenant": tenant_id,
            "run": run_id,
            "day": tranche.day,
            "month": tranche.month,
            "starts": tranche.starts_at,
            "ends": tranche.ends_at,
            "at": at,
        },
    )

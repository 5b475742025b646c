"""The first half of a commit: hold the run's row under its fence and read what the world wants of it, in
one go."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import psycopg

from budgets.book import BOOK, Book, parameters, read_book
from orchestrator.actions.hand import Hand
from orchestrator.core.events import Headroom, Refusal
from traces.core.canonical import payload_digest

HOLD = """
SELECT clock_timestamp() FROM orchestrator_run
 WHERE id = %(run)s AND fence = %(fence)s AND version = %(version)s AND lease_owner = %(worker)s
   FOR NO KEY UPDATE"""
SIGNALS = """
SELECT s.id, s.kind, s.payload::text, s.by FROM orchestrator_runsignal s
 WHERE s.run_id = %(run)s AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id)
 ORDER BY s.id LIMIT 50"""
STOPS = """
SELECT scope, target, reason FROM orchestrator_emergencystop
 WHERE lifted_at IS NULL AND (tenant_id IS NULL OR tenant_id = %(tenant)s)"""


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One signal as it was left."""

    id: int
    kind: str
    payload: Mapping[str, Any]
    by: UUID | None


@dataclass(frozen=True, slots=True)
class StopRow:
    """One emergency stop in force."""

    scope: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Opened:
    """What a commit starts from. `at` is its one time."""

    at: datetime
    signals: tuple[SignalRow, ...]
    stops: tuple[StopRow, ...]
    book: Book | None


@dataclass(slots=True)
class Learnt:
    """What an earlier try of the same commit learnt from the database."""

    refused: tuple[Refusal, ...] = ()
    void: dict[str, str] | None = None

    def refusal(self, refusal: Refusal) -> None:
        """A line refused a reservation."""
        others = tuple(known for known in self.refused if known.dimension != refusal.dimension)
        self.refused = (*others, refusal)


def open_commit(hand: Hand, cursor: "psycopg.Cursor[Any]") -> Opened | None:
    """Hold the row and read signals, stops and the account's book in one round trip. None: the lease is
    lost."""
    connection = cursor.connection
    keys = {"run": hand.run, "fence": hand.fence, "version": hand.version, "worker": hand.worker}
    # psycopg's own cursors: Django's bind on the client and never prepare.
    signals, stops, book = (psycopg.Cursor(connection) for _ in range(3))
    with connection.pipeline():
        cursor.execute(HOLD, keys, prepare=True)
        signals.execute(SIGNALS, {"run": hand.run}, prepare=True)
        stops.execute(STOPS, {"tenant": hand.tenant}, prepare=True)
        book.execute(BOOK, parameters(hand.tenant, hand.run), prepare=True)
    held = cursor.fetchone()
    if held is None:
        return None
    return Opened(
        at=held[0],
        signals=tuple(SignalRow(row[0], row[1], orjson.loads(row[2]), row[3]) for row in signals.fetchall()),
        stops=tuple(StopRow(*row) for row in stops.fetchall()),
        book=read_book(hand.run, book.fetchall()),
    )


def headroom(
    hand: Hand, opened: Opened, learnt: Learnt, *, open_circuits: tuple[str, ...], slice_over: bool
) -> Headroom:
    """What the core is told beside the event."""
    cost: Decimal | None = opened.book.tenant_cost(opened.at) if opened.book is not None else None
    stopped = tuple(stop.target for stop in opened.stops if stop.scope == "tool")
    return Headroom(
        tenant_cost=cost,
        refused=learnt.refused,
        void=learnt.void or {},
        open_circuits=open_circuits,
        stopped_tools=stopped,
        slice_over=slice_over,
    )


def stop_for(hand: Hand, stops: tuple[StopRow, ...]) -> StopRow | None:
    """The stop that ends this run, if one does; a tool's stop only closes the tool."""
    for stop in stops:
        if stop.scope in ("global", "tenant") or (
            stop.scope == "workflow" and stop.target == hand.manifest.workflow
        ):
            return stop
    return None


def digest_of(hand: Hand, body: bytes) -> str:
    """The digest under which the run stores content."""
    return payload_digest(hand.salt, body)

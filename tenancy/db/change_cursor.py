"""Cursors for lists of states: the commit from which on a reader has not seen the changes.

A row's time of change would lose rows: a commit that began earlier may become visible later. The cursor is
the oldest transaction that had not ended when the reader looked (`pg_snapshot_xmin`). Every change that the
reader did not see was written by that transaction or a later one, and PostgreSQL stores with every row which
transaction wrote it. Rows may be returned twice; no row is missed
(docs/decisions/lists-follow-transactions.md).
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection
from psycopg import sql

from tenancy.db.tenant_context import raw_cursor

A_READ = 200
# Ended rows are also filtered by their time, which is set before the commit becomes visible.
SLACK = timedelta(minutes=10)
NOW = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, clock_timestamp()"
# A row stores only 32 bits of its transaction number; the rest follows because no visible row was written by
# a future transaction.
FUTURE = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
WRITTEN = f"({FUTURE} - (({FUTURE} & 4294967295) - xmin::text::bigint + 4294967296) % 4294967296)"
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MS = timedelta(milliseconds=1)
Row = tuple[UUID, int]


class ChangeCursor(NamedTuple):
    """A transaction's 64-bit number, and the database's time when it was read."""

    xid: int
    at: datetime

    def __str__(self) -> str:
        """Return the cursor as text that sorts in order of time."""
        return f"{self.xid:020d}-{(self.at - _EPOCH) // _MS}"


class Changes(NamedTuple):
    """The changed rows in the order of their transactions, the next cursor, and whether there are more."""

    ids: tuple[UUID, ...]
    seq: str
    more: bool


def mark_of(cursor: str) -> ChangeCursor | None:
    """Parse a cursor; return None for the beginning ("").

    Raises: ValueError if the text is not a cursor of this module.
    """
    if not cursor:
        return None
    xid, _, ms = cursor.partition("-")
    if not (len(xid) == 20 and 1 <= len(ms) <= 14 and (xid + ms).isascii() and (xid + ms).isdigit()):
        raise ValueError("not a cursor of ours")
    return ChangeCursor(int(xid), _EPOCH + int(ms) * _MS)


def mark_text(given: object) -> str:
    """Return a cursor as a client gave it; None, "" and 0 are the beginning.

    Raises: ValueError.
    """
    if given is None or given == 0:
        return ""
    if not isinstance(given, str):
        raise ValueError("the cursor is not one of ours")
    mark_of(given)
    return given


def mark_now() -> ChangeCursor:
    """Return the cursor of the current snapshot. A page takes it before it reads its rows."""
    with connection.cursor() as cursor:
        cursor.execute(NOW)
        row = cursor.fetchone()
    assert row is not None
    return ChangeCursor(*row)


def list_changes(candidates: str, after: str) -> Changes:
    """Return the rows of `candidates` that changed after a cursor. In the tenant's context.

    `candidates` is SQL that selects (id, written) of the rows that may have changed. In that SQL, `{written}`
    is replaced by the number of the transaction that wrote a row, and `{since}` by the time from which on
    ended rows count. From the beginning, all candidates are returned, including those that ended in the last
    ten minutes.

    Raises: ValueError if `after` is not a cursor of this module.
    """
    mark, now = mark_of(after), mark_now()
    if mark is None or mark.xid > now.xid:
        # From the beginning, or from another cluster's numbering.
        mark = ChangeCursor(0, now.at if mark is None else mark.at)

    def list_written_rows(low: int, high: int | None, limit: int | None = None) -> list[Row]:
        return _list_changed_rows(candidates, mark.at - SLACK, low, high, limit)

    settled = list_written_rows(mark.xid, now.xid, A_READ + 1)
    if len(settled) > A_READ:
        return _build_change_page(settled, mark, list_written_rows)
    # Rows above the snapshot's lower bound may still be joined by rows of older transactions. They are
    # returned completely, and again by the next call.
    return Changes(
        tuple(row[0] for row in (*settled, *list_written_rows(now.xid, None))), str(now), more=False
    )


def _build_change_page(
    settled: list[Row], mark: ChangeCursor, written: Callable[[int, int | None], list[Row]]
) -> Changes:
    """Build a page that ends between two transactions; the next page begins with the first one omitted."""
    border = settled[-1][1]
    kept = [row for row in settled if row[1] < border]
    if not kept:
        # One transaction wrote more than a page.
        kept, border = written(border, border + 1), border + 1
    return Changes(tuple(row[0] for row in kept), str(ChangeCursor(border, mark.at)), more=True)


def _list_changed_rows(
    candidates: str, since: datetime, low: int, high: int | None, limit: int | None
) -> list[Row]:
    # Literals and not parameters: the plan must see how narrow the range is.
    inner = candidates.replace("{written}", WRITTEN).replace("{since}", sql.quote(since))
    above = "" if high is None else f" AND written < {high:d}"
    ending = "" if limit is None else f" LIMIT {limit:d}"
    query = f"SELECT id, written FROM ({inner}) AS candidates WHERE written >= {low:d}{above}"  # noqa: S608 - our own words and numbers
    cursor = raw_cursor()
    cursor.execute(f"{query} ORDER BY written, id{ending}".encode(), prepare=False)
    return cursor.fetchall()

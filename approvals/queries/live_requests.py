"""Which requests of the tenant changed since a cursor: the rows of every inbox that follows. In the tenant's
context."""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from approvals.models import Request
from tenancy.db.change_cursor import WRITTEN, list_changes, mark_of
from tenancy.db.tenant_context import raw_cursor

# What is said or done and does not settle a request leaves its row as it is: it counts by itself.
CANDIDATES = """
SELECT id, max(written) AS written FROM (
  SELECT id, {written} AS written FROM approvals_request WHERE status = 'pending'
   UNION ALL
  SELECT id, {written} FROM approvals_request WHERE status <> 'pending' AND settled_at >= {since}
   UNION ALL
  SELECT request_id, {written} FROM approvals_decision WHERE at >= {since}
   UNION ALL
  SELECT request_id, {written} FROM approvals_handling WHERE at >= {since}
   UNION ALL
  SELECT request_id, {written} FROM approvals_deferral WHERE at >= {since}
   UNION ALL
  SELECT request_id, {written} FROM approvals_deferral WHERE ended_at >= {since}) AS parts
 GROUP BY id"""


class ChangedRequests(NamedTuple):
    """Requests as they stand now, the cursor after them, and whether there are more already."""

    requests: tuple[Request, ...]
    seq: str
    more: bool


def changed_requests(after: str) -> ChangedRequests:
    """The requests that changed after a cursor; from the beginning (""): those that are open or were just
    settled.

    A request may come twice, none is missed. Raises ValueError for a cursor that is none of ours.
    """
    found = list_changes(CANDIDATES, after)
    rows = Request.objects.in_bulk(found.ids)
    return ChangedRequests(tuple(rows[key] for key in found.ids if key in rows), found.seq, found.more)


# Words and remarks have rows of their own: a request's row is written when it is made and when it is settled.
# A yes that came to nothing puts its request back before people.
_SINCE = f"{WRITTEN.replace('%', '%%')} >= %(xid)s"
ROWS = f"""
SELECT id FROM approvals_request WHERE id = ANY(%(ids)s) AND {_SINCE}
 UNION
SELECT request_id FROM approvals_deferral
 WHERE request_id = ANY(%(ids)s) AND fate IN ('undone', 'lapsed')
   AND {_SINCE}"""  # noqa: S608 - our own words


def written_since(ids: Collection[UUID], after: str) -> set[UUID]:
    """Which of these requests were made or settled after a cursor, or came back, and not only spoken about.

    Raises ValueError for a cursor that is none of ours.
    """
    mark = mark_of(after)
    if mark is None or not ids:
        return set(ids)
    cursor = raw_cursor()
    cursor.execute(ROWS, {"ids": list(ids), "xid": mark.xid})
    return {row[0] for row in cursor.fetchall()}

"""Change token of the approvals of a run, by which a page detects news outside the run's trace."""

from typing import Final
from uuid import UUID

from tenancy.db.tenant_context import raw_cursor

# Every change of a request or a deferral rewrites its row, so that its xmin changes; decisions and other
# actions are only added.
STANDS: Final = """
SELECT coalesce(string_agg(xmin::text, ',' ORDER BY id), ''),
       (SELECT count(*) FROM approvals_decision d
         WHERE d.request_id IN (SELECT id FROM approvals_request WHERE run_id = %(run)s)),
       (SELECT count(*) FROM approvals_handling h
         WHERE h.request_id IN (SELECT id FROM approvals_request WHERE run_id = %(run)s)),
       (SELECT coalesce(string_agg(d.xmin::text, ',' ORDER BY d.id), '') FROM approvals_deferral d
         WHERE d.request_id IN (SELECT id FROM approvals_request WHERE run_id = %(run)s))
  FROM approvals_request WHERE run_id = %(run)s"""


def version_of(run_id: UUID) -> str:
    """Return a text that changes with every change of a request of this run and every action on one.

    Runs in the tenant's context.
    """
    cursor = raw_cursor()
    cursor.execute(STANDS, {"run": run_id})
    row = cursor.fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    return "/".join(str(part) for part in row)

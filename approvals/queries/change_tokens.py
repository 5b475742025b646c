"""What stands about a run beside its trace: from a change of it a page knows that somebody said something."""

from typing import Final
from uuid import UUID

from tenancy.db.tenant_context import raw_cursor

# A request's row is written anew whatever changes in it, and so is a yes that is kept back; words and what
# else was done are only added.
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
    """The same text as long as nobody has said anything to a request of this run and none has changed. Inside
    the tenant's context."""
    cursor = raw_cursor()
    cursor.execute(STANDS, {"run": run_id})
    row = cursor.fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    return "/".join(str(part) for part in row)

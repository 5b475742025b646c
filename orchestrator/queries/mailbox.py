"""What waits in a run's mailbox. Inside the tenant's context."""

from typing import Final
from uuid import UUID

from tenancy.context import raw_cursor

UNTAKEN: Final = """
SELECT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = %(run)s
  AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id))"""


def has_untaken(run_id: UUID) -> bool:
    """Whether anything waits there that no record has taken."""
    cursor = raw_cursor()
    cursor.execute(UNTAKEN, {"run": run_id}, prepare=True)
    row = cursor.fetchone()
    return bool(row and row[0])

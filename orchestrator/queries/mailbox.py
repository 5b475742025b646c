"""What waits in a run's mailbox. Inside the tenant's context."""

from typing import Final, LiteralString
from uuid import UUID

from tenancy.context import raw_cursor

UNTAKEN: Final = """
SELECT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = %(run)s
  AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id))"""
PARKING: Final = """
SELECT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = %(run)s AND s.kind = 'pause'
  AND s.by IS NULL AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id))"""


def has_untaken(run_id: UUID) -> bool:
    """Whether anything waits there that no record has taken."""
    return _found(UNTAKEN, run_id)


def parking(run_id: UUID) -> bool:
    """Whether the wish to pause the run that nobody but Interlock has waits there."""
    return _found(PARKING, run_id)


def _found(question: LiteralString, run_id: UUID) -> bool:
    cursor = raw_cursor()
    cursor.execute(question, {"run": run_id}, prepare=True)
    row = cursor.fetchone()
    return bool(row and row[0])

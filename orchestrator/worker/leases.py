"""Leases: who may write a run (R-SESS-2). Taken by a conditional update; a dead one is taken over and
counted."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings

from orchestrator.worker.effects.run_loader import READ
from tenancy.db.pipeline import Rows
from tenancy.db.tenant_context import raw_cursor, tenant_asking, tenant_transaction

CLAIM = """
UPDATE orchestrator_run SET
  fence = fence + 1, lease_owner = %(worker)s,
  lease_until = clock_timestamp() + make_interval(secs => %(seconds)s),
  takeovers = CASE WHEN lease_owner IS NULL THEN takeovers ELSE takeovers + 1 END
WHERE id = %(run)s AND (lease_owner IS NULL OR lease_until < clock_timestamp())
RETURNING fence, version, takeovers, status, workflow_version_id, record_number, record_hash, event_seq,
          event_hash, snapshot_number, patch_bytes, clock_timestamp()"""
RELEASE = """
UPDATE orchestrator_run SET lease_owner = NULL, lease_until = NULL
WHERE id = %(run)s AND fence = %(fence)s AND lease_owner = %(worker)s"""
# Dropped as if its holder had died: nobody renews it, and whoever takes it counts a takeover.
DROP = """
UPDATE orchestrator_run SET lease_owner = 'dropped', lease_until = clock_timestamp()
WHERE id = %(run)s AND fence = %(fence)s AND lease_owner = %(worker)s"""
# The lock that the lease names is looked at once more: its holder may have it again.
EXPIRE = """
UPDATE orchestrator_run SET lease_until = clock_timestamp()
WHERE id = %(run)s AND lease_until > clock_timestamp()
  AND lease_owner ~ ':lock:[0-9]{1,18}$'
  AND NOT interlock_lock_is_held(substring(lease_owner from ':lock:([0-9]{1,18})$')::bigint)
RETURNING id"""
PARK = """
UPDATE orchestrator_run SET status = 'paused', reason = %(reason)s, lease_owner = NULL, lease_until = NULL,
  takeovers = 0
WHERE id = %(run)s AND fence = %(fence)s
  AND status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input')
RETURNING id"""
RENEW = """
UPDATE orchestrator_run SET lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE id = (SELECT id FROM orchestrator_run
             WHERE id = %(run)s AND fence = %(fence)s AND lease_owner = %(worker)s
               FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedLease:
    """The run's row as it was when the lease was taken, and what `READ` found of the run right after."""

    fence: int
    version: int
    takeovers: int
    status: str
    workflow_version: UUID
    record_number: int
    record_hash: bytes
    event_seq: int
    event_hash: bytes
    snapshot_number: int
    patch_bytes: int
    at: datetime
    read: tuple[Rows, ...]


def claim_lease(tenant_id: UUID, run_id: UUID, worker: str) -> ClaimedLease | None:
    """Take the lease, in a commit of its own so that a crash right after still counts, and then read the run,
    in the same trip. None: somebody has it."""
    values = {"run": run_id, "worker": worker, "seconds": settings.INTERLOCK_LEASE_SECONDS}
    reading = [(query, values) for query in READ]
    claimed, *read = tenant_asking(tenant_id, (CLAIM, values), *reading, first_lands=True)
    if not claimed:
        return None
    (row,) = claimed
    return ClaimedLease(
        fence=row[0],
        version=row[1],
        takeovers=row[2],
        status=row[3],
        workflow_version=row[4],
        record_number=row[5],
        record_hash=bytes(row[6]),
        event_seq=row[7],
        event_hash=bytes(row[8]),
        snapshot_number=row[9],
        patch_bytes=row[10],
        at=row[11],
        read=tuple(read),
    )


def release_lease(tenant_id: UUID, run_id: UUID, worker: str, fence: int) -> None:
    """Give the lease back; nothing happens where it was lost before."""
    with tenant_transaction(tenant_id):
        raw_cursor().execute(RELEASE, {"run": run_id, "fence": fence, "worker": worker})


def expire_lease(tenant_id: UUID, run_id: UUID, worker: str, fence: int) -> None:
    """Let the lease die at once: the next holder resolves what is in flight, and is counted."""
    with tenant_transaction(tenant_id):
        raw_cursor().execute(DROP, {"run": run_id, "fence": fence, "worker": worker})


def expire_dead_lease(tenant_id: UUID, run_id: UUID) -> bool:
    """End the lease of a process that is dead by its lock; whether that was done. Whoever claims the run then
    resolves what is in flight, and is counted."""
    with tenant_transaction(tenant_id):
        cursor = raw_cursor()
        cursor.execute(EXPIRE, {"run": run_id})
        return cursor.fetchone() is not None


def pause_unreadable(tenant_id: UUID, run_id: UUID, fence: int, reason: str) -> bool:
    """Pause a run that cannot even be read, on its row alone: a transition would have to be computed from
    what cannot be read. Whether it was parked."""
    with tenant_transaction(tenant_id):
        cursor = raw_cursor()
        cursor.execute(PARK, {"run": run_id, "fence": fence, "reason": reason[:500]})
        return cursor.fetchone() is not None


def renew_lease(tenant_id: UUID, run_id: UUID, worker: str, fence: int) -> bool:
    """Prolong the lease, without waiting for the run's row; whether that was done. It was not where the lease
    is another's, and where somebody keeps the row."""
    values = {"run": run_id, "fence": fence, "worker": worker, "seconds": settings.INTERLOCK_LEASE_SECONDS}
    (renewed,) = tenant_asking(tenant_id, (RENEW, values))
    return bool(renewed)

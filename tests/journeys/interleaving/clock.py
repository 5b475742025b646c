"""Time as an actor: it passes by moving what the database remembers into the past, never by waiting."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import psycopg

LEASE = """
UPDATE orchestrator_run SET lease_until = clock_timestamp() - interval '1 second'
 WHERE id = %s AND lease_owner IS NOT NULL"""
DEADLINES = "UPDATE orchestrator_intent SET deadline = deadline - interval '1 hour' WHERE run_id = %s"
GATES = """
UPDATE approvals_request SET expires_at = clock_timestamp() - interval '1 second'
 WHERE run_id = %s AND status = 'pending'"""
WAKE = "UPDATE orchestrator_run SET wake_at = clock_timestamp() WHERE id = %s AND wake_at IS NOT NULL"
GRANTS = """
UPDATE approvals_request SET settled_at = settled_at - make_interval(secs => grant_seconds + 1)
 WHERE run_id = %s AND status = 'decided'"""
PARK = """
UPDATE orchestrator_run SET lease_owner = 'left by a test that is over',
       lease_until = clock_timestamp() + interval '1 day'
 WHERE status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input', 'paused')
    OR id IN (SELECT run_id FROM orchestrator_runsignal s
               WHERE NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))"""
CIRCUITS = """
UPDATE orchestrator_circuitrow SET until = clock_timestamp() WHERE tenant_id = %s AND until IS NOT NULL"""
FORGOTTEN = "DELETE FROM orchestrator_circuitrow WHERE tenant_id = %s"


class Clock:
    """Moves one run's times, as a superuser past the guards that forbid it."""

    def __init__(self, superuser: psycopg.Connection) -> None:
        self._superuser = superuser

    def lease_dies(self, run: UUID) -> None:
        """The lease is over, and with it the deadline of whatever is in flight."""
        with self._unguarded():
            self._superuser.execute(LEASE, [run])
            self._superuser.execute(DEADLINES, [run])

    def circuits_cool_down(self, tenant: UUID) -> None:
        """The cooldowns of a tenant's circuits are over."""
        self._superuser.execute(CIRCUITS, [tenant])

    def failures_are_forgotten(self, tenant: UUID) -> None:
        """The circuits of a tenant know of no failure: what broke for one run was long ago for the next."""
        self._superuser.execute(FORGOTTEN, [tenant])

    def gates_expire(self, run: UUID) -> None:
        """Nobody decided in time."""
        with self._unguarded():
            self._superuser.execute(GATES, [run])
            self._superuser.execute(WAKE, [run])

    def grants_expire(self, run: UUID) -> None:
        """What was granted was not used in time."""
        with self._unguarded():
            self._superuser.execute(GRANTS, [run])

    def park_the_rest(self) -> None:
        """Lease away every run that earlier tests left unfinished or with an unread signal, so that no sweep
        drives it into this test's world.
        """
        with self._unguarded():
            self._superuser.execute(PARK)

    @contextmanager
    def _unguarded(self) -> Iterator[None]:
        self._superuser.execute("SET session_replication_role = replica")
        try:
            yield
        finally:
            self._superuser.execute("SET session_replication_role = origin")

"""The second wall: a gateway asks the database before it sends (R-BUDGET-17).

A call goes out only for a committed, unexpired intent with an open reservation under the run's current
fence, and under no emergency stop. Nothing in the process can vouch for that.
"""

from uuid import UUID

import psycopg
from django.db import connection

from orchestrator.gateways.wall import PermitRefused

ASK = "SELECT interlock_permit(%s, %s, %s, %s)"


class DatabasePermit:
    """The right to perform one effect, asked for at the moment of sending."""

    def __init__(self, tenant_id: UUID, run_id: UUID, effect: str, fence: int) -> None:
        self._keys = (tenant_id, run_id, effect, fence)

    def check(self) -> PermitRefused | None:
        """None when the effect may be sent now, else why not. One statement, one round trip."""
        connection.ensure_connection()
        with connection.wrap_database_errors:
            # psycopg's own cursor prepares; the guard has nothing to see here, for the function names no
            # table.
            row = psycopg.Cursor(connection.connection).execute(ASK, self._keys, prepare=True).fetchone()
        reason = str(row[0]) if row is not None else "unknown"
        return None if reason == "ok" else PermitRefused(reason=reason)

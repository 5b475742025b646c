"""The second wall: a gateway asks the database before it sends (R-BUDGET-17).

A call goes out only for a committed, unexpired intent with an open reservation under the run's current
fence, and under no emergency stop. For a call that changes something the database is asked as it is sent;
for one that only reads or thinks its answer to the commit will do, for a quarter of a second.
"""

from typing import NamedTuple
from uuid import UUID

import psycopg
from django.db import connection

from orchestrator.outbound.gateways.monotonic_clock import read_monotonic_clock
from orchestrator.outbound.gateways.send_authorization import SendRefused

ASK = "SELECT interlock_permit(%s, %s, %s, %s)"
# Of a look-up: it asks what became of an effect in flight, whose intent may have expired since.
ASK_LOOK = "SELECT interlock_look_permit(%s, %s, %s, %s)"
# Of a look-up after the end of its run, which a person asked for.
ASK_LATE_LOOK = "SELECT interlock_late_look_permit(%s, %s, %s, %s)"
# What a commit asks in the trip in which it lands, of every effect that only reads or thinks.
ASK_ALL = b"SELECT e, interlock_permit($1, $2, e, $3) FROM unnest($4::text[]) AS e"
# How long the database's answer holds. A process that slept longer asks again.
FRESH_SECONDS = 0.25


class CachedAuthorization(NamedTuple):
    """An answer of the database, asked for at the steady second `at`."""

    reason: str
    at: float


class DatabasePermit:
    """The right to perform one effect, asked for at the moment of sending; or to look one up, `late` after
    the end of its run.

    `known` is the answer that came with the commit; it is used once, and only while it is fresh.
    """

    def __init__(
        self,
        tenant_id: UUID,
        run_id: UUID,
        effect: str,
        fence: int,
        known: CachedAuthorization | None = None,
        *,
        look: bool = False,
        late: bool = False,
    ) -> None:
        self._keys = (tenant_id, run_id, effect, fence)
        self._known = known
        look_statement = ASK_LATE_LOOK if late else ASK_LOOK
        self._statement = look_statement if look else ASK

    @property
    def run(self) -> UUID:
        """The run that asks."""
        return self._keys[1]

    def check(self) -> SendRefused | None:
        """None when the effect may be sent now, else why not. One statement, one round trip, or none."""
        known, self._known = self._known, None
        fresh = known is not None and read_monotonic_clock() - known.at <= FRESH_SECONDS
        reason = known.reason if known is not None and fresh else self._query_permission()
        return None if reason == "ok" else SendRefused(reason=reason)

    def _query_permission(self) -> str:
        connection.ensure_connection()
        with connection.wrap_database_errors:
            # psycopg's own cursor prepares; the guard has nothing to see here, for the function names no
            # table.
            row = (
                psycopg.Cursor(connection.connection)
                .execute(self._statement, self._keys, prepare=True)
                .fetchone()
            )
        return str(row[0]) if row is not None else "unknown"

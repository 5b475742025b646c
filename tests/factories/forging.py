"""What only a superuser can do: write a stored record over, past its guards."""

from collections.abc import Callable
from uuid import UUID

import psycopg

READ = "SELECT number, body FROM traces_record WHERE run_id = %s AND {} ORDER BY number LIMIT 1"
WRITE = "UPDATE traces_record SET body = %s WHERE run_id = %s AND number = %s"


def forge(superuser: psycopg.Connection, run: UUID, where: str, other: Callable[[bytes], bytes]) -> int:
    """Give the run's first record of which `where` holds another body; its number.

    `where` is SQL of the test's own.
    """
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        row = superuser.execute(READ.format(where).encode(), (run,)).fetchone()
        assert row is not None
        number, body = int(row[0]), bytes(row[1])
        forged = other(body)
        assert forged != body
        superuser.execute(WRITE, (forged, run, number))
    return number

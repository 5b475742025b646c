"""The one clock that counts: the database's."""

from datetime import datetime

from django.db import connection

NOW = "SELECT clock_timestamp()"


def database_now() -> datetime:
    """clock_timestamp() of the database, aware, UTC."""
    with connection.cursor() as cursor:
        cursor.execute(NOW)
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[0]
    return now

"""The one clock that counts: the database's."""

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """clock_timestamp() of the database, aware, UTC."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[0]
    return now

"""Session-level advisory lock of PostgreSQL that shows other processes that this one is alive.

A worker process uses one connection for this purpose only and locks a random number on it. The server
releases the lock as soon as the process has died. Objects that name the number (a run's lease, the claim of
an Idempotency-Key) can then be taken over. A process that is only paused, as by SIGSTOP, still has its lock:
for that case a lease has a time limit.

Behind a pooler that gives a session to another client after each transaction, no such lock is possible
(`INTERLOCK_DATABASE_SESSIONS=0`); leases and claims then end only by their time limits.
"""

from __future__ import annotations

import threading
from functools import cache
from secrets import randbits

import psycopg
import structlog
from django.conf import settings
from django.db import connection

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 0.2
LOCK = "SELECT pg_advisory_lock(%s)"
IS_HELD = "SELECT interlock_lock_is_held(%s)"
# Numbers of at most eighteen digits, because SQL parses them from the names of workers.
BITS = 59
log = structlog.get_logger(__name__)


class ProcessLock(threading.Thread):
    """Thread that holds the lock of `number` for as long as this process lives, across lost connections."""

    def __init__(self) -> None:
        super().__init__(name="process-lock", daemon=True)
        self.number = randbits(BITS)
        self._end_asked = threading.Event()
        self._connection: psycopg.Connection | None = None

    def hold(self) -> None:
        """Take the lock, and start the thread that keeps it.

        Raises: psycopg.OperationalError.
        """
        self._connection = self._connect_and_lock()
        self.start()

    def run(self) -> None:
        """Watch the connection; if it is lost, take the lock on a new one."""
        while not self._end_asked.is_set():
            try:
                if self._connection is None:
                    self._connection = self._connect_and_lock()
                    log.info("process_lock.taken_again")
                # No notification is ever sent: this waits, and detects the end of the connection at once.
                for _ in self._connection.notifies(timeout=LOOK_SECONDS):
                    pass
            except psycopg.Error as error:
                if self._connection is not None:
                    log.warning("process_lock.lost", error=type(error).__name__)
                self._close()
                self._end_asked.wait(AGAIN_SECONDS)
        self._close()

    def end(self) -> None:
        """Release the lock, and wait until that is done."""
        self._end_asked.set()
        if self.is_alive():
            self.join(2 * LOOK_SECONDS)
        self._close()

    def _connect_and_lock(self) -> psycopg.Connection:
        parameters = connection.get_connection_params() | {
            "autocommit": True,
            "connect_timeout": 5,
            "application_name": "interlock lock",
            "cursor_factory": psycopg.Cursor,
        }
        made = psycopg.connect(**parameters)
        made.execute(LOCK, (self.number,))
        return made

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@cache
def _of_this_process() -> ProcessLock:
    return ProcessLock()


def hold_process_lock() -> int | None:
    """Hold this process's lock from now on; return its number, or None if sessions are not kept.

    Raises: psycopg.OperationalError.
    """
    if not settings.INTERLOCK_DATABASE_SESSIONS:
        return None
    lock = _of_this_process()
    if not lock.is_alive():
        lock.hold()
    return lock.number


def is_lock_held(number: int) -> bool:
    """Return whether some process holds the lock of this number."""
    with connection.cursor() as cursor:
        cursor.execute(IS_HELD, (number,))
        return bool(cursor.fetchone()[0])


def process_lock_number() -> int | None:
    """Return the number of the lock that this process holds, or None if it holds none."""
    if not settings.INTERLOCK_DATABASE_SESSIONS:
        return None
    lock = _of_this_process()
    return lock.number if lock.is_alive() else None

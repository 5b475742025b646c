"""Identifiers: UUID version 7, in order within a process.

Made here and not by the database: an id is needed before its row is written, and a server older than
PostgreSQL 18 has no function for it.
"""

import os
import threading
import time
from uuid import UUID

_LOCK = threading.Lock()
_last = 0


def fresh_id() -> UUID:
    """A new UUIDv7: 48 bits of milliseconds, 12 of a counter that keeps one process's ids in order, 62 of
    chance."""
    global _last  # noqa: PLW0603 - the order within a process is this one number
    chance = int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1)
    with _LOCK:
        tick = max(time.time_ns() // 1_000_000 << 12, _last + 1)
        _last = tick
    milliseconds, counter = tick >> 12, tick & 0xFFF
    return UUID(int=milliseconds << 80 | 7 << 76 | counter << 64 | 2 << 62 | chance)

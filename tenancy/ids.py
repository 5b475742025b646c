"""Identifiers: UUID version 7, made here because PostgreSQL 15 has none; in order within a process."""

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

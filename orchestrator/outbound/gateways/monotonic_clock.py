"""Time that this process measures by itself: for deadlines and cooldowns only. Times that are kept are the
database's.
"""

from datetime import UTC, datetime
from time import monotonic
from typing import Protocol


class Monotonic(Protocol):
    """Seconds since some moment; never goes back."""

    def __call__(self) -> float: ...


def read_monotonic_clock() -> float:
    """Monotonic seconds."""
    return monotonic()


def wall_now() -> datetime:
    """The process's idea of now, aware, UTC: for a tool whose answer is the time, never for a ledger."""
    return datetime.now(UTC)

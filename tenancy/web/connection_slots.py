"""Limit of the connections of one web process.

A counted connection is being served or waits for its client; a connection may also be moved to a principal's
own limit. Everything in this module belongs to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TELL_SECONDS = 10.0
STATE_KEY = "interlock.connection_slot"
"""Where an ASGI scope's `state` holds the slot of its connection."""


class ConnectionSlot:
    """The slot of one counted connection. `close` ends the connection at once."""

    def __init__(self, slots: ConnectionSlots, close: Callable[[], None]) -> None:
        self._slots, self.close = slots, close
        self._released = False

    def wait(self) -> None:
        """Mark the slot as waiting for its client: it may be evicted if all slots are in use."""
        if not self._released:
            self._slots._hold(self, waiting=True)  # noqa: SLF001 - the two are one thing

    def serve(self) -> None:
        """Mark the slot as serving a complete request: it is not evicted."""
        if not self._released:
            self._slots._hold(self, waiting=False)  # noqa: SLF001

    def lend(self) -> None:
        """Stop counting this connection: from now on a principal's own limit applies."""
        self._slots._drop(self)  # noqa: SLF001

    def release(self) -> None:
        """Release the slot at the end of the connection."""
        self._released = True
        self._slots._drop(self)  # noqa: SLF001


class ConnectionSlots:
    """At most `limit` connections. If all are in use, the one that has waited longest for its client is
    closed.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: dict[ConnectionSlot, None] = {}
        self._serving: set[ConnectionSlot] = set()
        self._told: float | None = None

    def __len__(self) -> int:
        """Return how many connections are counted."""
        return len(self._waiting) + len(self._serving)

    def take(self, close: Callable[[], None]) -> ConnectionSlot | None:
        """Count a new connection; None if all slots are in use by requests that are being answered."""
        if len(self) >= self.limit and not self._evict():
            return None
        slot = ConnectionSlot(self, close)
        self._waiting[slot] = None
        return slot

    def should_tell(self, now: float) -> bool:
        """Return whether to log now that all slots are in use; at most once per TELL_SECONDS."""
        if self._told is not None and now - self._told < TELL_SECONDS:
            return False
        self._told = now
        return True

    def _evict(self) -> bool:
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        oldest.release()
        oldest.close()
        return True

    def _hold(self, slot: ConnectionSlot, *, waiting: bool) -> None:
        self._drop(slot)
        if waiting:
            self._waiting[slot] = None
        else:
            self._serving.add(slot)
        # A connection that returns from a principal's own limit may exceed this one.
        if len(self) > self.limit:
            self._evict()

    def _drop(self, slot: ConnectionSlot) -> None:
        self._waiting.pop(slot, None)
        self._serving.discard(slot)


def slot_of(scope: Mapping[str, Any]) -> ConnectionSlot | None:
    """Return the slot of a scope's connection; None if the server does not count connections."""
    slot: ConnectionSlot | None = scope.get("state", {}).get(STATE_KEY)
    return slot

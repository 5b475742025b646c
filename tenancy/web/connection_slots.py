"""Bounded connections of one web process: who is served, who is waited for, who follows under another bound.

Everything here belongs to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TELL_SECONDS = 10.0
STATE_KEY = "interlock.connection_slot"
"""Where an ASGI scope's `state` holds the slot of its connection."""


class ConnectionSlot:
    """One connection's place among those that are counted. `close` ends the connection at once."""

    def __init__(self, slots: ConnectionSlots, close: Callable[[], None]) -> None:
        self._slots, self.close = slots, close
        self._released = False

    def wait(self) -> None:
        """The client is to send something: the slot may be taken by somebody else where all are in use."""
        if not self._released:
            self._slots._hold(self, waiting=True)  # noqa: SLF001 - the two are one thing

    def serve(self) -> None:
        """The request is whole and being answered: the slot is kept."""
        if not self._released:
            self._slots._hold(self, waiting=False)  # noqa: SLF001

    def lend(self) -> None:
        """Count this connection no more: a principal's own bound holds from here on."""
        self._slots._drop(self)  # noqa: SLF001

    def release(self) -> None:
        """The connection is over."""
        self._released = True
        self._slots._drop(self)  # noqa: SLF001


class ConnectionSlots:
    """At most `limit` connections. A full house gives up the connection whose client it waits for longest."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: dict[ConnectionSlot, None] = {}
        self._serving: set[ConnectionSlot] = set()
        self._told: float | None = None

    def __len__(self) -> int:
        """How many connections are counted."""
        return len(self._waiting) + len(self._serving)

    def take(self, close: Callable[[], None]) -> ConnectionSlot | None:
        """Count a new connection; None where all slots are in use by requests that are being answered."""
        if len(self) >= self.limit and not self._evict():
            return None
        slot = ConnectionSlot(self, close)
        self._waiting[slot] = None
        return slot

    def should_tell(self, now: float) -> bool:
        """Whether to log that all slots are in use: now and then, however many are turned away."""
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
        # A connection that comes back from a principal's bound may be one too many.
        if len(self) > self.limit:
            self._evict()

    def _drop(self, slot: ConnectionSlot) -> None:
        self._waiting.pop(slot, None)
        self._serving.discard(slot)


def slot_of(scope: Mapping[str, Any]) -> ConnectionSlot | None:
    """The slot of a scope's connection; None where the server counts none."""
    slot: ConnectionSlot | None = scope.get("state", {}).get(STATE_KEY)
    return slot

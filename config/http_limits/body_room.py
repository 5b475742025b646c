"""The bytes of request bodies that one web process holds at once, and each sender's part of them (R-SEC-7).

Everything here belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from tenancy.web.connection_auth import Headers, Presence

log = structlog.stdlib.get_logger(__name__)
KIB: Final = 1024
MIB: Final = 1024 * KIB
SMALL: Final = 64 * KIB
"""So much of every body is taken without asking for room: 512 connections hold 32 MiB in that way."""
ROOM: Final = 64 * MIB
"""The most bytes that all bodies hold beyond that."""
SHARE: Final = 16 * MIB
"""The most of the room that one sender holds; all senders that are not known are one."""
UNKNOWN: Final = ""
RETRY_SECONDS: Final = 2
IDENTIFY_SECONDS: Final = 2.0
TELL_SECONDS: Final = 10.0

Identify = Callable[[Headers, str], Awaitable[str]]
"""From headers and the connection's other end to the name of the sender; UNKNOWN where there is none."""


class BodyRoom:
    """Counts what is held beyond the small part of each body, in all and by sender."""

    def __init__(self, room: int = ROOM, share: int = SHARE) -> None:
        self.room, self.share = room, share
        self.held = 0
        self._by_sender: Counter[str] = Counter()
        self._told: float | None = None

    def has(self, sender: str, size: int) -> bool:
        """True if this sender may hold so many bytes more."""
        return self.held + size <= self.room and self._by_sender[sender] + size <= self.share

    def take(self, sender: str, size: int) -> bool:
        """Hold so many bytes more for this sender; False, and nothing is held, where there is no room."""
        if not self.has(sender, size):
            return False
        self.held += size
        self._by_sender[sender] += size
        return True

    def give_back(self, sender: str, size: int) -> None:
        """These bytes are held no more."""
        self.held -= size
        self._by_sender[sender] -= size
        if not self._by_sender[sender]:
            del self._by_sender[sender]

    def tell(self) -> None:
        """Log a refusal: now and then, however many there are."""
        now = asyncio.get_running_loop().time()
        if self._told is None or now - self._told >= TELL_SECONDS:
            self._told = now
            log.warning("bodies.full", held=self.held, room=self.room, share=self.share)


async def identify_nobody(headers: Headers, peer: str) -> str:
    """No sender is known here."""
    return UNKNOWN


def identified_by(arriving: Callable[[Headers, str], Awaitable[Presence]]) -> Identify:
    """The principal as the sender; UNKNOWN for whoever shows no valid key or session, and while that cannot
    be looked up."""

    async def identify(headers: Headers, peer: str) -> str:
        try:
            async with asyncio.timeout(IDENTIFY_SECONDS):
                return str((await arriving(headers, peer)).principal)
        except Exception:  # noqa: BLE001 - nobody, or a store that is away: the request itself will say so
            return UNKNOWN

    return identify

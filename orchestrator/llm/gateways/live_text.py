"""The live text of a reply while it is written, for the viewers of its run.

Nothing depends on this text: it may be lost without harm, and the committed reply replaces it
(docs/components.md).
"""

import asyncio
from typing import Final, Protocol

from orchestrator.tools.gateways.secret_redaction import without_secret
from traces.core.redaction import redact_begun

PACE_SECONDS: Final = 0.2
AGAIN_SECONDS: Final = 1.0
# The number of characters sent each time: the end of the text so far. A page has room for less.
WINDOW: Final = 800
# After this many bytes of one reply a viewer gets the rest once a second; text is followed up to MOST_TEXT.
MOST_BYTES: Final = 256 * 1024
MOST_TEXT: Final = 64 * 1024
# All effects of the process share the loop: at most this part of its time is spent on one reply's text.
SHARE: Final = 0.05


class Audience(Protocol):
    """The viewers of one call's run (traces/live/text_deltas.py). Neither method waits or raises."""

    def there(self) -> bool:
        """Return whether the run has a viewer, as far as this process last knew."""
        ...

    def tell(self, at: int, text: str) -> None:
        """Send the text from its character `at` on, as far as it goes."""
        ...


class LiveReply:
    """The live text of one reply.

    The text is sent at most five times a second, without secrets (R-TRACE-5); its last, incomplete word is
    held back. Every second it is sent again, so that new viewers see it, too. Nothing is prepared while the
    run has no viewer. The object belongs to one event loop. `secret` is the key that the call was sent
    with.
    """

    def __init__(self, audience: Audience | None, secret: str = "") -> None:
        self._audience, self._secret = audience, secret
        self._parts: list[str] = []
        self._size = self._told = 0
        self._last = (0, "")
        self._next = self._last_at = 0.0
        self._due: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Add the next piece of text."""
        if self._audience is None or self._size >= MOST_TEXT:
            return
        piece = text[: MOST_TEXT - self._size]
        self._parts.append(piece)
        self._size += len(piece)
        if self._due is None or self._due.when() > self._next:
            self._arm(self._next)

    def close(self) -> None:
        """Stop sending: the reply is complete, or will never be."""
        self._audience = None
        if self._due is not None:
            self._due.cancel()

    def _hide_secret(self, text: str) -> str:
        """Return the text without the key, and without a possible beginning of the key at the end."""
        if not self._secret:
            return text
        found = without_secret(text.encode("utf-8", "replace"), self._secret, cut=True)
        return found.decode("utf-8", "replace")

    def _arm(self, at: float) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = asyncio.get_running_loop().call_at(at, self._tell)

    def _tell(self) -> None:
        if self._audience is None:
            return
        clock = asyncio.get_running_loop().time
        now = clock()
        if self._audience.there():
            self._parts = ["".join(self._parts)]
            shown = redact_begun(self._hide_secret(self._parts[0]))
            at = max(0, len(shown) - WINDOW)
            if shown and ((at, shown[at:]) != self._last or now - self._last_at >= AGAIN_SECONDS):
                self._last, self._last_at = (at, shown[at:]), now
                self._told += len(shown[at:].encode("utf-8", "replace"))
                self._audience.tell(*self._last)
        pace = PACE_SECONDS if self._told < MOST_BYTES else AGAIN_SECONDS
        self._next = now + max(pace, (clock() - now) / SHARE)
        self._arm(max(self._next, now + AGAIN_SECONDS))

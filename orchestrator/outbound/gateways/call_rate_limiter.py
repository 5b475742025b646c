"""The second wall's own rate: calls of a tool by one run in the last minute, as this process saw them
(R-BUDGET-17).
"""

import threading
from collections.abc import Hashable

from orchestrator.core.common.sliding_window import EMPTY, SPAN, Window, wait_for, with_counted_call
from orchestrator.outbound.gateways.monotonic_clock import Monotonic, read_monotonic_clock

# Finer than the core's slots, and a second shorter than its minute: what the core allowed is not refused here
# for the phase of another clock.
GRAIN = 1
WITHIN = SPAN - 1
KEPT = 1_024


class CallRateLimiter:
    """Windows by whoever calls. Thread-safe, and bounded: what has been quiet for a minute is forgotten."""

    def __init__(self, clock: Monotonic = read_monotonic_clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[Hashable, Window] = {}
        self._last: dict[Hashable, int] = {}
        self._room = KEPT

    def take(self, caller: Hashable, rate: int) -> int:
        """Count one call of at most `rate` a minute; 0, or the seconds after which it may come again."""
        with self._lock:
            now = int(self._clock())
            window = self._windows.get(caller, EMPTY)
            wait = wait_for(window, rate, now, grain=GRAIN, span=WITHIN)
            if not wait:
                self._windows[caller] = with_counted_call(window, now, grain=GRAIN, span=WITHIN)
                self._last[caller] = now
                self._forget(now)
            return wait

    def _forget(self, now: int) -> None:
        """Drop the quiet ones each time the number has doubled: a call's share of that is constant."""
        if len(self._windows) <= self._room:
            return
        quiet = [caller for caller, last in self._last.items() if last + GRAIN + WITHIN <= now]
        for caller in quiet:
            del self._windows[caller], self._last[caller]
        self._room = max(KEPT, 2 * len(self._windows))

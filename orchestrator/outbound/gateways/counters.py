"""Counters of the operations of this process's gateways: a guard with its own accounts (R-BUDGET-17)."""

import threading
from collections import Counter
from collections.abc import Mapping

# Not a gateway: tripped breakers in commits of this process, by name and reason (R-BUDGET-12).
BREAKER = "breaker"
# Not a gateway either: circuits that this process switched, by protected service and state (R-BUDGET-13).
CIRCUIT = "circuit"


class OutcomeCounters:
    """Counts by (gateway, subject, outcome). Thread-safe; counts never decrease."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, gateway: str, subject: str, outcome: str) -> None:
        """Increment a count by one."""
        with self._lock:
            self._counts[(gateway, subject, outcome)] += 1

    def read(self) -> Mapping[tuple[str, str, str], int]:
        """Return a copy of the counts."""
        with self._lock:
            return dict(self._counts)


TALLY = OutcomeCounters()

"""What this process's gateways did, counted (R-BUDGET-17: a wall that keeps its own books)."""

import threading
from collections import Counter
from collections.abc import Mapping

# Not a gateway: breakers that commits of this process said have tripped, by name and reason (R-BUDGET-12).
BREAKER = "breaker"
# Nor this: circuits that this process switched, by what they are in front of and the state (R-BUDGET-13).
CIRCUIT = "circuit"


class Tally:
    """Counts by (gateway, subject, outcome). Thread-safe; only ever goes up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, gateway: str, subject: str, outcome: str) -> None:
        """One more."""
        with self._lock:
            self._counts[(gateway, subject, outcome)] += 1

    def read(self) -> Mapping[tuple[str, str, str], int]:
        """A copy of the counts."""
        with self._lock:
            return dict(self._counts)


TALLY = Tally()

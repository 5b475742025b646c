"""A circuit breaker per subject (a tool, a provider): closed, open, half-open with one probe (R-BUDGET-13).

Kept by each worker process: a dependency that is down is noticed within `THRESHOLD` calls of every worker.
"""

import threading
from dataclasses import dataclass

from orchestrator.gateways.clock import Monotonic, steady

THRESHOLD = 5
COOLDOWN_SECONDS = 30.0


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    open_until: float | None = None
    probing: bool = False
    tripped: bool = False


class Breakers:
    """The circuits of many subjects. Thread-safe."""

    def __init__(
        self, *, threshold: int = THRESHOLD, cooldown: float = COOLDOWN_SECONDS, clock: Monotonic = steady
    ) -> None:
        self._threshold, self._cooldown, self._clock = threshold, cooldown, clock
        self._lock = threading.Lock()
        self._circuits: dict[str, _Circuit] = {}

    def is_open(self, subject: str) -> bool:
        """Whether a call would be turned away now; looking takes no probe."""
        with self._lock:
            circuit = self._circuits.get(subject)
            return circuit is not None and self._blocked(circuit)

    def admit(self, subject: str) -> bool:
        """Whether this call may go out. After the cooldown exactly one may, as the probe."""
        with self._lock:
            circuit = self._circuits.get(subject)
            if circuit is None or circuit.open_until is None:
                return True
            if self._blocked(circuit):
                return False
            circuit.probing = True
            return True

    def report(self, subject: str, *, healthy: bool) -> None:
        """What became of an admitted call."""
        with self._lock:
            if healthy:
                self._close(subject)
                return
            circuit = self._circuits.setdefault(subject, _Circuit())
            circuit.failures += 1
            if circuit.failures >= self._threshold:
                circuit.open_until = self._clock() + self._cooldown
            circuit.probing = False

    def trip(self, subject: str) -> None:
        """Open the circuit at once, whatever came before, and hold it for the whole cooldown."""
        with self._lock:
            circuit = self._circuits.setdefault(subject, _Circuit())
            circuit.failures = self._threshold
            circuit.open_until = self._clock() + self._cooldown
            circuit.probing, circuit.tripped = False, True

    def release(self, subject: str) -> None:
        """An admitted call ended without a word on the other side's health (it was cancelled)."""
        with self._lock:
            circuit = self._circuits.get(subject)
            if circuit is not None:
                circuit.probing = False

    def _close(self, subject: str) -> None:
        """A good answer closes a circuit, but not one that was tripped after the call went out."""
        circuit = self._circuits.get(subject)
        if circuit is not None and not (circuit.tripped and self._blocked(circuit) and not circuit.probing):
            del self._circuits[subject]

    def _blocked(self, circuit: _Circuit) -> bool:
        if circuit.open_until is None:
            return False
        return circuit.probing or self._clock() < circuit.open_until

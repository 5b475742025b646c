"""What a gateway asks of circuits before a call and tells them after it (R-BUDGET-13).

The house's circuits stand in the database (orchestrator/actions/circuit_breakers.py), so every worker sees
the same. The twin here keeps its own by the same rules, for whoever uses a gateway without a database.
"""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from orchestrator.core.tools import circuit_breaker as rules
from orchestrator.core.tools.circuit_breaker import Blocked, Circuit, Kind, Setting, Ticket
from orchestrator.gateways.monotonic_clock import Monotonic, read_monotonic_clock

# A prober's lease outlives its call by this much.
GRACE_MS = 2_000


class Circuits(Protocol):
    """The circuits of one tenant, and those that all share. Each method may wait for the database."""

    def admit(self, kind: Kind, subject: str, *, timeout_ms: int) -> Ticket | Blocked:
        """The right to one call that takes `timeout_ms` at most, or for how long there is none."""
        ...

    def succeeded(self, ticket: Ticket) -> None:
        """The other side answered."""
        ...

    def failed(self, ticket: Ticket, reason: str) -> None:
        """The other side did not do its part; `reason` is a closed word."""
        ...

    def released(self, ticket: Ticket) -> None:
        """The call told nothing of the other side."""
        ...

    def trip(self, kind: Kind, subject: str, reason: str) -> None:
        """Open the circuit at once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """One admitted call, and where to tell what became of it."""

    circuits: Circuits
    ticket: Ticket

    def matters(self, *, healthy: bool | None) -> bool:
        """Whether telling it is worth a write: a good answer of a side in good health is not."""
        if healthy is None:
            return self.ticket.probe
        return not healthy or self.ticket.marked or self.ticket.probe

    def tell(self, *, healthy: bool | None, reason: str) -> None:
        """Tell it; `healthy` None: the call told nothing of the other side. Waits for the database."""
        if not self.matters(healthy=healthy):
            return
        if healthy is None:
            self.circuits.released(self.ticket)
        elif healthy:
            self.circuits.succeeded(self.ticket)
        else:
            self.circuits.failed(self.ticket, reason)

    async def tell_aside(self, *, healthy: bool | None, reason: str) -> None:
        """`tell` from the loop that performs effects: the database is waited for in a thread beside it, and
        the outcome is not handed on before."""
        if self.matters(healthy=healthy):
            await asyncio.to_thread(self.tell, healthy=healthy, reason=reason)


class LocalCircuits:
    """Circuits of this object alone. Thread-safe."""

    def __init__(self, setting: Setting | None = None, clock: Monotonic = read_monotonic_clock) -> None:
        self._setting, self._clock = setting or Setting(), clock
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], Circuit] = {}

    def blocked(self, kind: Kind, *subjects: str) -> tuple[str, ...]:
        """Those of `subjects` that take no call now; looking takes no probe."""
        with self._lock:
            now = self._now()
            return tuple(
                s for s in subjects if rules.is_circuit_blocking(self._held.get((kind, s), Circuit()), now)
            )

    def admit(self, kind: Kind, subject: str, *, timeout_ms: int) -> Ticket | Blocked:
        """As the protocol says."""
        with self._lock:
            found, now = self._held.get((kind, subject)), self._now()
            if found is None:
                return Ticket(kind=kind, subject=subject)
            if found.state == "closed":
                return Ticket(kind=kind, subject=subject, changes=found.changes, marked=found.failures > 0)
            probe = rules.with_probe(found, now, timedelta(milliseconds=timeout_ms + GRACE_MS))
            if probe is None:
                return Blocked(wait_ms=rules.wait_ms(found, now))
            self._held[kind, subject] = probe
            return Ticket(kind=kind, subject=subject, changes=probe.changes, probe=True)

    def succeeded(self, ticket: Ticket) -> None:
        """As the protocol says."""
        with self._lock:
            found = self._held.get((ticket.kind, ticket.subject))
            if found is not None:
                self._held[ticket.kind, ticket.subject] = rules.with_success(found, ticket.changes)

    def failed(self, ticket: Ticket, reason: str) -> None:
        """As the protocol says."""
        with self._lock:
            found = self._held.get((ticket.kind, ticket.subject), Circuit())
            after = rules.with_failure(found, ticket.changes, self._now(), reason, self._setting)
            self._held[ticket.kind, ticket.subject] = after

    def released(self, ticket: Ticket) -> None:
        """As the protocol says."""
        with self._lock:
            found = self._held.get((ticket.kind, ticket.subject))
            if found is not None:
                after = rules.with_probe_released(found, ticket.changes, self._now(), self._setting)
                self._held[ticket.kind, ticket.subject] = after

    def trip(self, kind: Kind, subject: str, reason: str) -> None:
        """As the protocol says."""
        with self._lock:
            found = self._held.get((kind, subject), Circuit())
            self._held[kind, subject] = rules.with_circuit_trip(found, self._now(), reason, self._setting)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=self._clock())

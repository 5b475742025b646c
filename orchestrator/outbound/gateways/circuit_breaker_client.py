"""Client side of the circuit breakers: admission before a call, report after it (R-BUDGET-13).

The deployment's circuits are in the database (orchestrator/outbound/actions.py), so every worker sees
the same ones. The local implementation here keeps its own circuits by the same rules, for use of a gateway
without a database.
"""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from orchestrator.core.tools import circuit_breaker as rules
from orchestrator.core.tools.circuit_breaker import BlockedCircuit, Circuit, Kind, Setting, Ticket
from orchestrator.outbound.gateways.monotonic_clock import Monotonic, read_monotonic_clock

# A prober's lease lasts this much longer than its call.
GRACE_MS = 2_000


class Circuits(Protocol):
    """The circuits of one tenant, and the shared ones. Each method may wait for the database."""

    def admit(self, kind: Kind, subject: str, *, timeout_ms: int) -> Ticket | BlockedCircuit:
        """Return the permission for one call of at most `timeout_ms`, or how long none is given."""
        ...

    def record_success(self, ticket: Ticket) -> None:
        """Record that the service answered."""
        ...

    def record_failure(self, ticket: Ticket, reason: str) -> None:
        """Record that the service failed; `reason` is a closed code."""
        ...

    def record_inconclusive(self, ticket: Ticket) -> None:
        """Record that the call was inconclusive about the service."""
        ...

    def trip(self, kind: Kind, subject: str, reason: str) -> None:
        """Open the circuit at once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedCall:
    """One admitted call, and the circuits to report its outcome to."""

    circuits: Circuits
    ticket: Ticket

    def matters(self, *, healthy: bool | None) -> bool:
        """Return whether the outcome is worth a write: a success of a healthy service is not.

        `healthy` None (an inconclusive call) matters only for a probe.
        """
        if healthy is None:
            return self.ticket.probe
        return not healthy or self.ticket.marked or self.ticket.probe

    def tell(self, *, healthy: bool | None, reason: str) -> None:
        """Report the outcome; `healthy` None means an inconclusive call. May wait for the database."""
        if not self.matters(healthy=healthy):
            return
        if healthy is None:
            self.circuits.record_inconclusive(self.ticket)
        elif healthy:
            self.circuits.record_success(self.ticket)
        else:
            self.circuits.record_failure(self.ticket, reason)

    async def tell_aside(self, *, healthy: bool | None, reason: str) -> None:
        """Report the outcome from the effect loop: a thread waits for the database.

        The outcome of the call is not passed on before the report is written.
        """
        if self.matters(healthy=healthy):
            await asyncio.to_thread(self.tell, healthy=healthy, reason=reason)


class LocalCircuits:
    """Circuits of this object alone. Thread-safe."""

    def __init__(self, setting: Setting | None = None, clock: Monotonic = read_monotonic_clock) -> None:
        self._setting, self._clock = setting or Setting(), clock
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], Circuit] = {}

    def list_blocked(self, kind: Kind, *subjects: str) -> tuple[str, ...]:
        """Return the `subjects` that take no call now; the check uses up no probe."""
        with self._lock:
            now = self._now()
            return tuple(
                s for s in subjects if rules.is_circuit_blocking(self._held.get((kind, s), Circuit()), now)
            )

    def admit(self, kind: Kind, subject: str, *, timeout_ms: int) -> Ticket | BlockedCircuit:
        """Admit a call as in `Circuits.admit`."""
        with self._lock:
            found, now = self._held.get((kind, subject)), self._now()
            if found is None:
                return Ticket(kind=kind, subject=subject)
            if found.state == "closed":
                return Ticket(kind=kind, subject=subject, changes=found.changes, marked=found.failures > 0)
            probe = rules.with_probe(found, now, timedelta(milliseconds=timeout_ms + GRACE_MS))
            if probe is None:
                return BlockedCircuit(wait_ms=rules.wait_ms(found, now))
            self._held[kind, subject] = probe
            return Ticket(kind=kind, subject=subject, changes=probe.changes, probe=True)

    def record_success(self, ticket: Ticket) -> None:
        """Record a success as in `Circuits.record_success`."""
        with self._lock:
            found = self._held.get((ticket.kind, ticket.subject))
            if found is not None:
                self._held[ticket.kind, ticket.subject] = rules.with_success(found, ticket.changes)

    def record_failure(self, ticket: Ticket, reason: str) -> None:
        """Record a failure as in `Circuits.record_failure`."""
        with self._lock:
            found = self._held.get((ticket.kind, ticket.subject), Circuit())
            after = rules.with_failure(found, ticket.changes, self._now(), reason, self._setting)
            self._held[ticket.kind, ticket.subject] = after

    def record_inconclusive(self, ticket: Ticket) -> None:
        """Record an inconclusive call as in `Circuits.record_inconclusive`."""
        with self._lock:
            found = self._held.get((ticket.kind, ticket.subject))
            if found is not None:
                after = rules.with_probe_released(found, ticket.changes, self._now(), self._setting)
                self._held[ticket.kind, ticket.subject] = after

    def trip(self, kind: Kind, subject: str, reason: str) -> None:
        """Open a circuit as in `Circuits.trip`."""
        with self._lock:
            found = self._held.get((kind, subject), Circuit())
            self._held[kind, subject] = rules.with_circuit_trip(found, self._now(), reason, self._setting)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=self._clock())

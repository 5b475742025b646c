"""The circuits as people and programs see them (R-BUDGET-13). In the tenant's context: its own, and those of
providers, which all tenants share."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from orchestrator.core.tools.circuit_breaker import Circuit, Condition, Kind, derive_visible_state
from orchestrator.outbound.models import CircuitRow
from tenancy.core.errors import NotFound

ORDER = ("open", "half_open", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitSeen:
    """One circuit; of kind `use` in front of the tenant's own use of a provider. `next_probe`: when a call
    may try again, or how long the one that tries may take; `reason` is how the last call failed, empty
    where it did not."""

    id: UUID
    kind: Kind
    subject: str
    state: Condition
    failures: int
    since: datetime
    next_probe: datetime | None
    reason: str
    failed_at: datetime
    shared: bool
    probing: bool


def circuits_now(at: datetime) -> tuple[CircuitSeen, ...]:
    """All that ever failed, those in trouble first. Whatever is not among them is closed."""
    found = [_build_circuit_status(row, at) for row in CircuitRow.objects.order_by("kind", "subject")]
    return tuple(sorted(found, key=lambda one: (ORDER.index(one.state), -one.failures, one.subject)))


def circuits_of_tools(at: datetime) -> dict[str, CircuitSeen]:
    """Those in front of tools, by the tool's name."""
    return {one.subject: one for one in circuits_now(at) if one.kind == "tool"}


def circuit_now(circuit_id: UUID, at: datetime) -> CircuitSeen:
    """One of them. Raises NotFound."""
    row = CircuitRow.objects.filter(id=circuit_id).first()
    if row is None:
        raise NotFound
    return _build_circuit_status(row, at)


def _build_circuit_status(row: CircuitRow, at: datetime) -> CircuitSeen:
    state: Condition = row.state  # type: ignore[assignment]
    kind: Kind = row.kind  # type: ignore[assignment]
    now = derive_visible_state(
        Circuit(state=state, failures=row.failures, changes=row.changes, until=row.until), at
    )
    waiting = row.until is not None and row.until > at
    return CircuitSeen(
        id=row.id, kind=kind, subject=row.subject, state=now, failures=row.failures, since=row.since,
        next_probe=row.until if waiting else None, reason=row.reason, failed_at=row.failed_at,
        shared=row.tenant_id is None, probing=row.state == "half_open" and waiting,
    )  # fmt: skip

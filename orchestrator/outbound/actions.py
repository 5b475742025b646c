"""The circuit breakers of the deployment, as rows that all workers share (R-BUDGET-13).

The rules are core/tools/circuit_breaker.py.

Each move is one conditional statement under the database's clock, so that of many workers one gets the probe,
and a report from before a change of state changes nothing. A commit reads the rows that are in trouble, or
ever changed, with everything else it reads; a call is written down only where it failed, or where failures
were known before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, cast
from uuid import UUID, uuid5

import structlog
from django.conf import settings
from django.db import Error, connection
from django.db.models import Q

from orchestrator.core.tools.circuit_breaker import (
    RELEASED_SECONDS,
    BlockedCircuit,
    Circuit,
    Condition,
    Kind,
    Setting,
    Ticket,
    wait_ms,
)
from orchestrator.outbound.gateways.circuit_breaker_client import GRACE_MS
from orchestrator.outbound.gateways.counters import CIRCUIT, TALLY
from orchestrator.outbound.models import CircuitRow
from tenancy.actions import write_audit_entry
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import raw_cursor, tenant_transaction

log = structlog.get_logger(__name__)
SPACE = UUID("6b0f3b6e-54c5-4f5a-9f5d-2f0f1c1e7a13")
OPENED = "make_interval(secs => %(cooldown)s) + clock_timestamp()"
FIRST = "%(threshold)s <= 1"
OPENS = "(c.state = 'half_open' OR c.failures + 1 >= %(threshold)s)"
FAIL = f"""
INSERT INTO orchestrator_circuitrow AS c
  (id, tenant_id, kind, subject, state, failures, changes, until, reason, since, failed_at)
VALUES (%(id)s, %(owner)s, %(kind)s, %(subject)s, CASE WHEN {FIRST} THEN 'open' ELSE 'closed' END, 1,
  ({FIRST})::int, CASE WHEN {FIRST} THEN {OPENED} END, %(reason)s, clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO UPDATE SET
  failures = c.failures + 1, reason = EXCLUDED.reason, failed_at = clock_timestamp(),
  state = CASE WHEN {OPENS} THEN 'open' ELSE 'closed' END, changes = c.changes + {OPENS}::int,
  until = CASE WHEN {OPENS} THEN {OPENED} END,
  since = CASE WHEN {OPENS} THEN clock_timestamp() ELSE c.since END
WHERE c.state <> 'open' AND c.changes = %(changes)s
RETURNING state"""  # noqa: S608 - our own words
TRIP = f"""
INSERT INTO orchestrator_circuitrow AS c
  (id, tenant_id, kind, subject, state, failures, changes, until, reason, since, failed_at)
VALUES (%(id)s, %(owner)s, %(kind)s, %(subject)s, 'open', greatest(%(threshold)s, 1), 1, {OPENED}, %(reason)s,
  clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO UPDATE SET
  failures = greatest(%(threshold)s, c.failures + 1), reason = EXCLUDED.reason, state = 'open',
  changes = c.changes + 1, until = {OPENED}, since = clock_timestamp(), failed_at = clock_timestamp()
RETURNING state"""  # noqa: S608 - our own words
# The lease of a run ends with its worker: what that had sent as the probe brings no answer to anybody, so the
# run has it again under its next lease.
PROBE = """
UPDATE orchestrator_circuitrow SET state = 'half_open', changes = changes + 1, since = clock_timestamp(),
  until = clock_timestamp() + make_interval(secs => %(lease)s), prober = %(run)s, prober_fence = %(fence)s
WHERE id = %(id)s AND state <> 'closed' AND (until <= clock_timestamp()
   OR state = 'half_open' AND prober = %(run)s AND prober_fence < %(fence)s)
RETURNING changes"""
SUCCEED = """
UPDATE orchestrator_circuitrow SET state = 'closed', failures = 0, until = NULL, reason = '',
  changes = changes + (state = 'half_open')::int,
  since = CASE WHEN state = 'half_open' THEN clock_timestamp() ELSE since END
WHERE id = %(id)s AND changes = %(changes)s AND state <> 'open'
RETURNING state"""
RELEASE = """
UPDATE orchestrator_circuitrow SET state = 'open', changes = changes + 1,
  until = clock_timestamp() + make_interval(secs => least(%(released)s, %(cooldown)s))
WHERE id = %(id)s AND changes = %(changes)s AND state = 'half_open'
RETURNING state"""
# A row that ever changed is read for its number alone, which the calls let out now carry: as many rows as
# tools and providers that ever opened, never one per call.
TOLD = "(failures > 0 OR changes > 0)"
LOOK = f"""
SELECT kind, subject, state, failures, changes, until, reason, clock_timestamp()
FROM orchestrator_circuitrow WHERE {TOLD} AND (tenant_id IS NULL OR tenant_id = %(tenant)s)"""  # noqa: S608
Known = Mapping[tuple[str, str], Circuit]


def setting_now() -> Setting:
    """The threshold and the cooldown that are set for this house."""
    return _build_breaker_setting(
        settings.INTERLOCK_CIRCUIT_FAILURES, settings.INTERLOCK_CIRCUIT_COOLDOWN_SECONDS
    )


@lru_cache(8)
def _build_breaker_setting(threshold: int, cooldown_seconds: int) -> Setting:
    return Setting(threshold=threshold, cooldown_seconds=cooldown_seconds)


@dataclass(slots=True)
class TenantCircuits:
    """The circuits that one tenant's calls meet. `known` are those in trouble or changed before, as the last
    commit read them; None: not read yet."""

    tenant_id: UUID
    known: Known | None = None
    setting: Setting = field(default_factory=setting_now)
    run: UUID | None = None
    fence: int | None = None

    def admit(self, kind: Kind, subject: str, *, timeout_ms: int) -> Ticket | BlockedCircuit:
        """The right to one call, or how long there is none. A silent database gives none."""
        try:
            found = self._look(kind, subject)
            if found is None:
                return Ticket(kind=kind, subject=subject)
            if found.state == "closed":
                return _let_out(kind, subject, found)
            return self._probe(kind, subject, timeout_ms)
        except Error as error:
            log.warning("circuit.unreachable", error=type(error).__name__)
            return BlockedCircuit(wait_ms=1_000)

    def record_success(self, ticket: Ticket) -> None:
        """The other side answered: its row of failures is over."""
        if self._write(SUCCEED, ticket) and ticket.probe:
            _record_state_change(ticket.subject, "closed", "")

    def record_failure(self, ticket: Ticket, reason: str) -> None:
        """One failure more."""
        if self._write(FAIL, ticket, reason) == "open":
            _record_state_change(ticket.subject, "open", reason)

    def record_inconclusive(self, ticket: Ticket) -> None:
        """The probe told nothing: the next is let out soon."""
        self._write(RELEASE, ticket)

    def trip(self, kind: Kind, subject: str, reason: str) -> None:
        """Open the circuit at once."""
        if self._write(TRIP, Ticket(kind=kind, subject=subject), reason):
            _record_state_change(subject, "open", reason)

    def _look(self, kind: str, subject: str) -> Circuit | None:
        if self.known is None:
            with tenant_transaction(self.tenant_id):
                cursor = raw_cursor()
                cursor.execute(LOOK, {"tenant": self.tenant_id})
                self.known = {(row[0], row[1]): _build_circuit(row) for row in cursor.fetchall()}
        return self.known.get((kind, subject))

    def _probe(self, kind: Kind, subject: str, timeout_ms: int) -> Ticket | BlockedCircuit:
        """Take the probe, or read again why there is none: it may have been closed since."""
        lease = (timeout_ms + GRACE_MS) / 1000
        values = {"id": self._id(kind, subject), "lease": lease, "run": self.run, "fence": self.fence}
        with tenant_transaction(self.tenant_id):
            cursor = raw_cursor()
            cursor.execute(PROBE, values)
            taken = cursor.fetchone()
            if taken is not None:
                _record_state_change(subject, "half_open", "")
                return Ticket(kind=kind, subject=subject, changes=taken[0], marked=True, probe=True)
            cursor.execute(LOOK + " AND id = %(id)s", {"tenant": self.tenant_id, **values})
            row = cursor.fetchone()
        if row is None or row[2] == "closed":
            return _let_out(kind, subject, Circuit() if row is None else _build_circuit(row))
        return BlockedCircuit(wait_ms=max(1, wait_ms(_build_circuit(row), row[7])))

    def _write(self, statement: str, ticket: Ticket, reason: str = "") -> str:
        """One statement in a transaction of its own; the state it led to, empty where nothing changed. What
        became of a call is never lost for it."""
        values: dict[str, object] = {
            "id": self._id(ticket.kind, ticket.subject), "owner": self._owner(ticket.kind),
            "kind": ticket.kind, "subject": ticket.subject, "changes": ticket.changes, "reason": reason[:64],
            "threshold": self.setting.threshold, "cooldown": self.setting.cooldown_seconds,
            "released": RELEASED_SECONDS,
        }  # fmt: skip
        try:
            with tenant_transaction(self.tenant_id):
                cursor = raw_cursor()
                cursor.execute(statement, values)
                row = cursor.fetchone()
        except Error as error:
            log.warning("circuit.not_written", subject=ticket.subject, error=type(error).__name__)
            return ""
        finally:
            connection.close()
        return str(row[0]) if row is not None else ""

    def _owner(self, kind: str) -> UUID | None:
        return None if kind == "model" else self.tenant_id

    def _id(self, kind: str, subject: str) -> UUID:
        return circuit_id(self._owner(kind), kind, subject)


def _let_out(kind: Kind, subject: str, closed: Circuit) -> Ticket:
    return Ticket(kind=kind, subject=subject, changes=closed.changes, marked=closed.failures > 0)


def _record_state_change(subject: str, state: str, reason: str) -> None:
    TALLY.add(CIRCUIT, subject, state)
    log.info("circuit.changed", subject=subject, state=state, reason=reason)


def circuit_id(owner: UUID | None, kind: str, subject: str) -> UUID:
    """The id of a circuit: it follows from whose it is (None: everybody's) and what it is in front of."""
    return uuid5(SPACE, f"{owner or ''} {kind} {subject}")


def reset_circuit(tenant_id: UUID, circuit: UUID, *, by: UUID, reason: str) -> CircuitRow:
    """Close a circuit of the tenant's own by a person's word: what was let out before changes nothing any
    more. Outermost verb: owns the transaction. Raises NotFound for another tenant's, and for none.

    A provider's circuit is everybody's, and no tenant closes it for others: one call tries the provider at
    once, whose good answer closes it. That is had once in a cooldown, whoever asks: people of many tenants,
    or a program, would else call without pause where everybody is to wait. Where it was had already, where
    one call tries it now, or where it is closed, nothing changes.
    """
    with tenant_transaction(tenant_id):
        row = CircuitRow.objects.select_for_update().filter(id=circuit).first()
        if row is None:
            raise NotFound
        before = {"state": row.state, "failures": row.failures, "reason": row.reason}
        changed = CircuitRow.objects.filter(id=circuit)
        after: dict[str, object] = {}
        if row.tenant_id is None:
            now = _get_clock_timestamp()
            before_that = now - timedelta(seconds=setting_now().cooldown_seconds)
            rested = changed.filter(Q(tried_at=None) | Q(tried_at__lte=before_that), state="open")
            after["tried"] = rested.update(until=now, tried_at=now) == 1
        else:
            changed.update(
                state="closed",
                failures=0,
                until=None,
                reason="",
                changes=row.changes + 1,
                since=_get_clock_timestamp(),
            )
        row.refresh_from_db()
        write_audit_entry(
            tenant_id, by, verb="circuit.reset", object=f"{row.kind}:{row.subject}", before=before,
            after={"state": row.state, **after}, reason=reason,
        )  # fmt: skip
    if before["state"] != row.state:
        _record_state_change(row.subject, "reset", reason)
    return row


def _get_clock_timestamp() -> datetime:
    cursor = raw_cursor()
    cursor.execute("SELECT clock_timestamp()")
    row = cursor.fetchone()
    assert row is not None
    return cast("datetime", row[0])


def _build_circuit(row: tuple[Any, ...]) -> Circuit:
    state: Condition = row[2]
    return Circuit(state=state, failures=row[3], changes=row[4], until=row[5], reason=row[6])

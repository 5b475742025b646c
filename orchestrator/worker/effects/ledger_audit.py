"""Verification of a tenant's whole ledger: runs with effects in flight, then days and months (R-BUDGET-3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from psycopg import IsolationLevel

from budgets.core.child_accounts import lane_effect
from budgets.ledger_verification import verify_ledger, verify_windows
from budgets.models import Account
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.state_loader import state_of
from tenancy.db.tenant_context import tenant_transaction
from traces.queries import load_state_parts
from traces.verification import VerificationFault

LIVE = ("queued", "in_progress", "awaiting_gate", "awaiting_input", "paused")


@dataclass(slots=True)
class AuditResult:
    """The number of verified runs, and the faults found."""

    runs: int
    faults: list[VerificationFault]


def prove_ledger(tenant_id: UUID, run_id: UUID | None = None) -> AuditResult:
    """Return every fault of a tenant's ledger, or of one run's.

    Outermost function: owns a transaction with one snapshot, so that runs under way are no faults.
    """
    with one_moment(), tenant_transaction(tenant_id):
        accounts = Account.objects.filter(kind=Account.Kind.RUN).order_by("id")
        chosen = accounts if run_id is None else accounts.filter(id=run_id)
        proof = AuditResult(runs=0, faults=[])
        live = set(Run.objects.filter(status__in=LIVE).values_list("id", flat=True))
        for found in chosen.values_list("id", flat=True).iterator(chunk_size=1_000):
            proof.runs += 1
            proof.faults += verify_ledger(found, open_effects=in_flight(found) if found in live else ())
        if run_id is None:
            proof.faults += verify_windows()
        return proof


def in_flight(run_id: UUID) -> frozenset[str]:
    """Return the effects of a run that have begun and not ended, and its open lanes.

    Runs in the tenant's context.
    """
    found = load_state_parts(run_id)
    state, _ = state_of(found.state, found.patches)
    lanes = Account.objects.filter(parent_id=run_id, closed_at=None).values_list("id", flat=True)
    return frozenset((*state.pending, *(lane_effect(lane.hex) for lane in lanes)))


@contextmanager
def one_moment() -> Iterator[None]:
    """Let each transaction of this connection read one snapshot, taken at its first statement."""
    connection.ensure_connection()
    raw = connection.connection
    before = raw.isolation_level
    raw.isolation_level = IsolationLevel.REPEATABLE_READ
    try:
        yield
    finally:
        raw.isolation_level = before

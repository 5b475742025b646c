"""The way back from the safety breaker: somebody answers for having looked at the trace (R-BUDGET-12)."""

from uuid import UUID

from orchestrator.queries.security import REVIEWED, name_of, to_review
from tenancy.actions import audit
from tenancy.context import tenant


def review(tenant_id: UUID, run_id: UUID, *, by: UUID, finding: str) -> None:
    """Write down that a run closed for safety was reviewed, and what was found. Outermost verb: owns the
    transaction. Raises NotFound for a run that no safety rule closed."""
    with tenant(tenant_id):
        run = to_review(run_id)
        audit(
            tenant_id, by, verb=REVIEWED, object=name_of(run.id), before={"terminal_code": run.terminal_code},
            after={"reviewed": True}, reason=finding,
        )  # fmt: skip

"""The way back from the safety breaker: somebody answers for having looked at the trace (R-BUDGET-12)."""

from uuid import UUID

from orchestrator.queries.lines import doers_of
from orchestrator.queries.security import REVIEWED, name_of, to_review
from tenancy.actions import audit
from tenancy.context import tenant
from tenancy.second_person import check_independent


def review(tenant_id: UUID, run_id: UUID, *, by: UUID, finding: str) -> None:
    """Write down that a run closed for safety was reviewed, and what was found. Outermost verb: owns the
    transaction. Raises NotFound for a run that no safety rule closed, and NotIndependent for people behind it
    or related to those who are, where another administrator could."""
    with tenant(tenant_id):
        run = to_review(run_id)
        what = "A run that a safety rule closed was reviewed by an administrator related to those behind it."
        check_independent(tenant_id, name_of(run.id), doers_of(run.id), what, by=by, reason=finding)
        audit(
            tenant_id, by, verb=REVIEWED, object=name_of(run.id), before={"terminal_code": run.terminal_code},
            after={"reviewed": True}, reason=finding,
        )  # fmt: skip

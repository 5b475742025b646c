"""The way back from the safety breaker: somebody answers for having looked at the trace (R-BUDGET-12)."""

from typing import Final
from uuid import UUID

from orchestrator.runs.queries.retry_lineage import doers_of
from orchestrator.runs.queries.safety_reviews import REVIEWED, name_of, to_review
from tenancy.actions import write_audit_entry
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import check_independent

COMMAND: Final = "manage.py security review"


def record_safety_review(tenant_id: UUID, run_id: UUID, *, by: UUID | None, finding: str) -> None:
    """Write down that a run closed for safety was reviewed, and what was found. Outermost verb: owns the
    transaction. `by` None is whoever has the shell. Raises NotFound for a run that no safety rule closed,
    OwnDeed for the people behind it (R-APPR-5), and NotIndependent for those related to them, where another
    administrator could."""
    with tenant_transaction(tenant_id):
        run = to_review(run_id)
        what = "A run that a safety rule closed was reviewed by an administrator related to those behind it."
        check_independent(
            tenant_id, name_of(run.id), doers_of(run.id), what, by=by, reason=finding, instead=COMMAND
        )
        write_audit_entry(
            tenant_id, by, verb=REVIEWED, object=name_of(run.id), before={"terminal_code": run.terminal_code},
            after={"reviewed": True}, reason=finding,
        )  # fmt: skip

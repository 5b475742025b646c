"""Reads of what guards a tool less and waits for a second person. Inside the tenant's context."""

from uuid import UUID

from orchestrator.core.errors import ProposalSettled
from orchestrator.models import ToolProposal
from tenancy.core.errors import NotFound

SHOWN = 100


def open_proposal(proposal: UUID | None) -> ToolProposal:
    """One that waits. Raises NotFound, also for another tenant's, and ProposalSettled."""
    row = proposal_of(proposal)
    if row.status != "open":
        raise ProposalSettled(status=row.status)
    return row


def proposal_of(proposal: UUID | None) -> ToolProposal:
    """One, as it stands. Raises NotFound, also for another tenant's."""
    row = None if proposal is None else ToolProposal.objects.filter(id=proposal).first()
    if row is None:
        raise NotFound
    return row


def tool_proposals(*, waiting: bool = True) -> list[ToolProposal]:
    """Those that wait, oldest first; or those that were settled, newest first, as far as a page shows."""
    if waiting:
        return list(ToolProposal.objects.filter(status="open").order_by("id"))
    return list(ToolProposal.objects.exclude(status="open").order_by("-settled_at", "-id")[:SHOWN])

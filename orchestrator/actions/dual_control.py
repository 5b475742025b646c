"""What every verb shares that waits for a second person: who asks, that nobody agrees to their own, and the
settling, once (R-TOOL-4, R-TOOL-17)."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from orchestrator.core.common.errors import BroughtAlong, OwnProposal
from orchestrator.models import PolicyProposal, ToolProposal
from tenancy.core.relations import Actors, Closeness
from tenancy.db.clock import database_now
from tenancy.people.relations import find_closeness_to

Proposal = PolicyProposal | ToolProposal
Settled = Literal["agreed", "refused", "withdrawn", "outdated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who changes it: the principal, and the person who answers for it. A person's keys are one person."""

    principal: UUID
    owner: UUID


def not_own(row: Proposal, who: Who) -> None:
    """Raises OwnProposal for whoever asked for it, by whatever key they were shown, and BroughtAlong for
    whoever is related to them. In the tenant's context."""
    close = find_closeness_to(who.principal, who.owner, Actors((row.by,), (row.owner,)))
    if close is Closeness.OWN:
        raise OwnProposal
    if close is Closeness.RELATED:
        raise BroughtAlong


def dropped_as(row: Proposal, who: Who) -> Settled:
    """What a no makes of it: one's own is taken back, another's refused."""
    return "withdrawn" if who.owner == row.owner else "refused"


def close_proposal(row: Proposal, status: Settled, who: Who | None, reason: str) -> None:
    """Close it: by whom, when and why; `who` None is the house itself. Joins the caller's transaction."""
    said = {
        "status": status, "settled_by": who.principal if who else None, "settled_at": database_now(),
        "settled_reason": reason[:500],
    }  # fmt: skip
    if isinstance(row, ToolProposal):
        owner = who.owner if who else None
        ToolProposal.objects.filter(id=row.id, status="open").update(**said, settled_owner=owner)
    else:
        PolicyProposal.objects.filter(id=row.id, status="open").update(**said)

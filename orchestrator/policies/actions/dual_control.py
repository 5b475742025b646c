"""Rules shared by every verb that waits for a second person.

They cover who proposes, that no person agrees to their own proposal, and that a proposal is settled once.

Spec: R-TOOL-4, R-TOOL-17.
"""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from orchestrator.core.approval.errors import BroughtAlong, OwnProposal
from orchestrator.policies.models import PolicyProposal
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.core.relations import Actors, Closeness
from tenancy.db.clock import database_now
from tenancy.people.relations import find_closeness_to

Proposal = PolicyProposal | ToolProposal
Settled = Literal["agreed", "refused", "withdrawn", "outdated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAuthor:
    """The author of a change: the principal and the person behind it. All keys of a person are one person."""

    principal: UUID
    owner: UUID


def not_own(row: Proposal, who: ChangeAuthor) -> None:
    """Check that a proposal is neither by this person nor by a related one. Call in the tenant's context.

    Raises: OwnProposal for the proposer, with any key; BroughtAlong for a person related to the proposer.
    """
    close = find_closeness_to(who.principal, who.owner, Actors((row.by,), (row.owner,)))
    if close is Closeness.OWN:
        raise OwnProposal
    if close is Closeness.RELATED:
        raise BroughtAlong


def dropped_as(row: Proposal, who: ChangeAuthor) -> Settled:
    """Return the status after a rejection: one's own proposal is withdrawn, another person's refused."""
    return "withdrawn" if who.owner == row.owner else "refused"


def close_proposal(row: Proposal, status: Settled, who: ChangeAuthor | None, reason: str) -> None:
    """Close a proposal: by whom, when and why. `who` None is the system itself. Joins the caller's
    transaction.
    """
    said = {
        "status": status, "settled_by": who.principal if who else None, "settled_at": database_now(),
        "settled_reason": reason[:500],
    }  # fmt: skip
    if isinstance(row, ToolProposal):
        owner = who.owner if who else None
        ToolProposal.objects.filter(id=row.id, status="open").update(**said, settled_owner=owner)
    else:
        PolicyProposal.objects.filter(id=row.id, status="open").update(**said)

"""Settling what waits for a second person about something that is another by now, or gone (R-TOOL-4).

Nobody can agree to it any more, and it would only stand in the way of the next that is asked for the same.
"""

from uuid import UUID

from orchestrator.policies.actions.dual_control import close_proposal
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.relaxation_proposals import find_stale_reason
from tenancy.actions import write_audit_entry


def outdate_proposals(tenant_id: UUID, tool: str = "") -> None:
    """Settle as outdated what waits and cannot be agreed to any more, of one tool or of all, with the reason.
    Joins the caller's transaction, which holds the registry."""
    waiting = ToolProposal.objects.filter(status="open", **({"tool": tool} if tool else {}))
    for row in waiting.order_by("id"):
        if why := find_stale_reason(tenant_id, row):
            close_proposal(row, "outdated", None, why)
            write_audit_entry(
                tenant_id, None, verb="tool.outdate_proposal", object=f"tool:{row.tool}",
                before={"proposal": str(row.id)}, after={}, reason=why,
            )  # fmt: skip

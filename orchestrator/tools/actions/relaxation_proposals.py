"""Keep and settle proposals to relax a safeguard until a second administrator agrees.

Tenancy decides when a second person is needed (`second_person`).

Spec: R-TOOL-4, R-BUDGET-9, P4.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from orchestrator.core.approval.errors import ProposalOpen
from orchestrator.policies.actions.dual_control import ChangeAuthor, close_proposal, dropped_as, not_own
from orchestrator.publishing.actions.versions import hold_registry
from orchestrator.tools.actions.stale_proposals import outdate_proposals
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.relaxation_proposals import open_proposal
from orchestrator.tools.queries.tools import ToolNow
from tenancy.actions import write_audit_entry
from tenancy.core.errors import SecondPersonNeeded
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import check_reason

Asked = ToolNow | ToolProposal
T = TypeVar("T")


def or_propose(
    tenant_id: UUID,
    perform: Callable[[], T],
    *,
    kind: str,
    body: dict[str, Any],
    who: ChangeAuthor,
    reason: str,
) -> T | ToolProposal:
    """Perform the change, or store it as a proposal if a second person is needed.

    Outermost verb: owns the transaction.

    Raises: ProposalOpen, InvalidInput, and what `perform` raises.
    """
    try:
        return perform()
    except SecondPersonNeeded as needed:
        return _create_tool_proposal(tenant_id, needed.data, kind=kind, body=body, who=who, reason=reason)


def settle_proposal(
    tenant_id: UUID,
    proposal: UUID | None,
    perform: Callable[[ToolProposal, UUID], T],
    *,
    who: ChangeAuthor,
    reason: str,
) -> T:
    """Approve a proposal as the second person and perform it as proposed. Outermost verb: owns the
    transaction.

    Raises: NotFound, ProposalSettled, OwnProposal, InvalidInput, Stale if the tool has changed since, and
    what `perform` raises.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        row = open_proposal(proposal)
        not_own(row, who)
        # Close it first: performing the change outdates the open proposals about the same object.
        close_proposal(row, "agreed", who, reason)
        return perform(row, who.principal)


def drop_tool_proposal(tenant_id: UUID, proposal: UUID | None, *, who: ChangeAuthor, reason: str) -> None:
    """Refuse a proposal, or withdraw one's own. Outermost verb: owns the transaction.

    Raises: NotFound, ProposalSettled, InvalidInput.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        row = open_proposal(proposal)
        became = dropped_as(row, who)
        close_proposal(row, became, who, reason)
        verb = "tool.withdraw" if became == "withdrawn" else "tool.refuse_proposal"
        write_audit_entry(
            tenant_id, who.principal, verb=verb, object=f"tool:{row.tool}",
            before={"proposal": str(row.id)}, after={}, reason=reason,
        )  # fmt: skip


def _create_tool_proposal(
    tenant_id: UUID,
    needed: dict[str, Any],
    *,
    kind: str,
    body: dict[str, Any],
    who: ChangeAuthor,
    reason: str,
) -> ToolProposal:
    check_reason(reason)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        outdate_proposals(tenant_id, needed["name"])
        if ToolProposal.objects.filter(tool=needed["name"], status="open").exists():
            raise ProposalOpen
        row = ToolProposal.objects.create(
            tenant_id=tenant_id, kind=kind, tool=needed["name"], tag=needed["tag"], body=body,
            weaker=needed["cases"], reason=reason[:500], by=who.principal, owner=who.owner,
            at=database_now(),
        )  # fmt: skip
        write_audit_entry(
            tenant_id, who.principal, verb="tool.propose", object=f"tool:{row.tool}", before={},
            after={"kind": kind, "weaker": needed["cases"], **body}, reason=reason,
        )  # fmt: skip
        return row

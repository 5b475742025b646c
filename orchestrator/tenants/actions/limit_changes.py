"""Raising a tenant's ceilings, opening private places and setting the rules of signing in, as people and
programs ask for it: at once, or once a second administrator agrees (R-BUDGET-9, P8, R-SEC-11)."""

from uuid import UUID

from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.publishing.actions.versions import hold_registry
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.actions.relaxation_proposals import or_propose
from orchestrator.tools.actions.stale_proposals import outdate_proposals
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.tool_servers import PlacesNow
from tenancy.actions.sign_in_rules import rules_document, set_sign_in_rules
from tenancy.core.sign_in.rules import SignInRules
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.sign_in_rules import RulesNow


def ask_for_ceilings(
    tenant_id: UUID, wanted: Ceilings, *, expected: str | None, who: ChangeAuthor, reason: str
) -> Ceilings | ToolProposal:
    """Set the ceilings, or keep what was asked where one is raised or removed. Outermost verb: owns the
    transaction. Raises InvalidInput, Stale, ProposalOpen."""

    def perform() -> Ceilings:
        with tenant_transaction(tenant_id):
            hold_registry(tenant_id)
            now = change_ceilings(tenant_id, wanted, by=who.principal, reason=reason, expected=expected)
            outdate_proposals(tenant_id)
            return now

    body = {"ceilings": wanted.model_dump(mode="json")}
    return or_propose(tenant_id, perform, kind="ceilings", body=body, who=who, reason=reason)


def ask_for_places(
    tenant_id: UUID, places: tuple[str, ...], *, expected: int | None, who: ChangeAuthor, reason: str
) -> PlacesNow | ToolProposal:
    """Make exactly these the private places, or keep what was asked where they are more than before.
    Outermost verb: owns the transaction. Raises InvalidInput, Stale, ProposalOpen."""
    return or_propose(
        tenant_id,
        lambda: set_places(tenant_id, places, expected=expected, by=who.principal, reason=reason),
        kind="places",
        body={"places": list(places)},
        who=who,
        reason=reason,
    )


def ask_for_sign_in_rules(
    tenant_id: UUID, wanted: SignInRules, *, expected: int | None, who: ChangeAuthor, reason: str
) -> RulesNow | ToolProposal:
    """Make these the rules of signing in, or keep what was asked where they ask for less than before.
    Outermost verb: owns the transaction. Raises InvalidInput, Stale, ProposalOpen."""

    def perform() -> RulesNow:
        with tenant_transaction(tenant_id):
            hold_registry(tenant_id)
            now = set_sign_in_rules(tenant_id, wanted, expected=expected, by=who.principal, reason=reason)
            outdate_proposals(tenant_id)
            return now

    body = {"rules": rules_document(wanted)}
    return or_propose(tenant_id, perform, kind="sign_in", body=body, who=who, reason=reason)

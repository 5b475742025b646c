"""Who may give back an item that somebody else has taken. Inside the tenant's context."""

from uuid import UUID

from approvals.queries.people import Stands
from orchestrator.queries.reviews import Reviewed, refused_to
from tenancy.core.roles import Scope
from tenancy.queries import standing_of


def may_release(tenant_id: UUID, found: Reviewed, who: Stands) -> bool:
    """Whether somebody may release what another has taken: an administrator always, whoever may review it
    once its holder may not any more. A release decides nothing, so that an administrator's own run is no
    hindrance (R-TOOL-19)."""
    if found.state != "taken" or found.holder is None or found.holder == who.principal:
        return False
    if Scope.ADMIN in who.scopes:
        return True
    if refused_to(found, who) is not None:
        return False
    holder = standing_of(tenant_id, found.holder)
    return holder is None or refused_to(found, holder) is not None

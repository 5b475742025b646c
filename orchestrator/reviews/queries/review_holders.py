"""The permission to release an item that another person has taken. Call it inside the tenant's context."""

from uuid import UUID

from approvals.queries.people import AuthorizedPrincipal
from orchestrator.reviews.queries.reviews import ReviewState, refused_to
from tenancy.core.roles import Scope
from tenancy.queries import standing_of


def may_release(tenant_id: UUID, found: ReviewState, who: AuthorizedPrincipal) -> bool:
    """Return whether a person may release an item that another person has taken.

    An administrator always may. A reviewer of the item may once its holder may not review it any more. A
    release decides nothing, so an administrator may also release items of their own runs (R-TOOL-19).
    """
    if found.state != "taken" or found.holder is None or found.holder == who.principal:
        return False
    if Scope.ADMIN in who.scopes:
        return True
    if refused_to(found, who) is not None:
        return False
    holder = standing_of(tenant_id, found.holder)
    return holder is None or refused_to(found, holder) is not None

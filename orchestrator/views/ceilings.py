"""POST /budgets/ceilings: setting what a tenant may spend (R-UI-7, R-BUDGET-9)."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from budgets.actions import newest_ceilings
from budgets.core.ceilings import Ceilings
from budgets.views.budgets import MEANWHILE, CeilingsForm, budgets_page
from orchestrator.actions.limit_changes import ask_for_ceilings
from orchestrator.core.common.errors import ProposalOpen
from orchestrator.models import ToolProposal
from orchestrator.views.change_requests import waits, who
from tenancy.core.errors import Stale
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.tenant_context import raw_cursor, tenant
from tenancy.web.page_auth import PageRequest, page, posted, require


@posted("budgets")
@page(Scope.READ, asks=(Area.MONEY,))
def ceilings(request: PageRequest) -> HttpResponse:
    """Set the ceilings, or ask a second administrator where one is raised or removed."""
    require(request.member, Scope.ADMIN)
    house, form = request.member.tenant.id, CeilingsForm(request.POST)
    if not form.is_valid():
        return budgets_page(request, form=form, status=422)
    with tenant(house):
        tranche = newest_ceilings(house, raw_cursor()).tranche_usd
    wanted = Ceilings(**form.wanted(), tranche_usd=tranche)
    given = form.cleaned_data
    try:
        found = ask_for_ceilings(
            house, wanted, expected=given["tag"], who=who(request), reason=given["reason"]
        )
    except (Stale, ProposalOpen) as error:
        stale = isinstance(error, Stale)
        form.add_error(None, MEANWHILE if stale else str(error))
        return budgets_page(request, form=form, status=412 if stale else 409)
    if isinstance(found, ToolProposal):
        return waits(request)
    messages.success(request, "The ceilings hold from the next reservation on.")
    return redirect("budgets")

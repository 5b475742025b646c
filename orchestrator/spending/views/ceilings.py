"""POST /budgets/ceilings: setting what a tenant may spend (R-UI-7, R-BUDGET-9)."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from budgets.actions import newest_ceilings
from budgets.core.ceilings import Ceilings
from budgets.views.budgets import MEANWHILE, CeilingsForm, budgets_page
from orchestrator.core.approval.errors import ProposalOpen
from orchestrator.tenants.actions.limit_changes import ask_for_ceilings
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from tenancy.core.errors import Stale
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.web.page_auth import PageRequest, check_scopes, redirect_unless_post, require_member


@redirect_unless_post("budgets")
@require_member(Scope.READ, asks=(Area.MONEY,))
def update_ceilings(request: PageRequest) -> HttpResponse:
    """Set the ceilings, or ask a second administrator where one is raised or removed."""
    check_scopes(request.member, Scope.ADMIN)
    house, form = request.member.tenant.id, CeilingsForm(request.POST)
    if not form.is_valid():
        return budgets_page(request, form=form, status=422)
    with tenant_transaction(house):
        tranche = newest_ceilings(house, raw_cursor()).tranche_usd
    wanted = Ceilings(**form.collect_ceilings(), tranche_usd=tranche)
    given = form.cleaned_data
    try:
        found = ask_for_ceilings(
            house, wanted, expected=given["tag"], who=build_requester(request), reason=given["reason"]
        )
    except (Stale, ProposalOpen) as error:
        stale = isinstance(error, Stale)
        form.add_error(None, MEANWHILE if stale else str(error))
        return budgets_page(request, form=form, status=412 if stale else 409)
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, "The ceilings hold from the next reservation on.")
    return redirect("budgets")

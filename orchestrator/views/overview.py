"""GET /: does anything need me, and is anything out of bounds? (R-UI-1)"""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from orchestrator import library
from orchestrator.gateways.broker import broker_answers
from orchestrator.queries.overview import overview as read
from orchestrator.views.submit import curl_of, fresh_key
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.roles import Scope
from tenancy.pages import PageRequest, page


@require_safe
@page(Scope.READ)
def overview(request: PageRequest) -> HttpResponse:
    """The first page. Where nothing was ever run: what could be started now."""
    broker = broker_answers()
    with tenant(request.member.tenant.id):
        seen = read(database_now())
    starters = library.starters() if seen.fresh else ()
    return render(
        request,
        "orchestrator/overview.html",
        {
            "seen": seen,
            "broker": broker,
            "starters": starters,
            "may_submit": request.member.may(Scope.SUBMIT),
            "may_admin": request.member.may(Scope.ADMIN),
            "key": fresh_key(),
            "curl": curl_of(request, starters[0].workflow, starters[0].goal) if starters else "",
        },
    )

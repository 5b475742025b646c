"""GET /: does anything need me, and is anything out of bounds? (R-UI-1)"""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from approvals.queries.people import decider_of
from budgets.queries.alerts import standing_alerts
from orchestrator import library
from orchestrator.gateways.broker import broker_answers
from orchestrator.library import Starter
from orchestrator.queries.overview import overview as read
from orchestrator.queries.starters import offered
from orchestrator.views.submit import curl_of, fresh_key
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.roles import Scope
from tenancy.pages import PageRequest, page

FIRST = "support-refund"
"""The workflow whose ready goal reaches a decision of people soonest."""


def first_starters() -> tuple[Starter, ...]:
    """One ready goal of each workflow, the quickest to a decision first."""
    found = {starter.workflow: starter for starter in reversed(library.starters())}
    return tuple(sorted(found.values(), key=lambda starter: (starter.workflow != FIRST, starter.workflow)))


@require_safe
@page(Scope.READ)
def overview(request: PageRequest) -> HttpResponse:
    """The first page. Where nothing was ever run: what could be started now."""
    broker = broker_answers()
    with tenant(request.member.tenant.id):
        at = database_now()
        seen, alerts = read(at, decider_of(request.member)), standing_alerts(at)
        starters = offered(first_starters()) if seen.fresh else ()
    return render(
        request,
        "orchestrator/overview.html",
        {
            "seen": seen,
            "alerts": alerts,
            "broker": broker,
            "starters": starters,
            "may_submit": request.member.may(Scope.SUBMIT),
            "may_admin": request.member.may(Scope.ADMIN),
            "key": fresh_key(),
            "curl": curl_of(request, starters[0].starter.workflow, starters[0].goal) if starters else "",
        },
    )

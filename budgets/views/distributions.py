"""GET /budgets/figures: how steps, depth, tokens, cost and time of a workflow's runs are spread, beside their
caps, and what drifts (R-BUDGET-14)."""

from dataclasses import dataclass
from decimal import Decimal

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from budgets.core.statistics.distribution import Spread
from budgets.queries.expenses import METRICS, RUNS, get_usage_spreads, workflows_run
from budgets.views.bar_chart import HEIGHT, WIDTH, Column, columns_of
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, require_member

WORDS = {"steps": "Steps", "depth": "Depth", "tokens": "Tokens", "cost": "Cost", "seconds": "Time at work"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricView:
    """A metric as the page draws it."""

    name: str
    word: str
    unit: str
    spread: Spread
    columns: tuple[Column, ...]


@require_safe
@require_member(Scope.READ)
def show_distributions_page(request: PageRequest) -> HttpResponse:
    """The newest ended runs of a workflow against as many before them."""
    with tenant_transaction(request.member.tenant.id):
        known = workflows_run()
        asked = request.GET.get("workflow", "")
        workflow = asked if asked in known else next(iter(known), "")
        found = get_usage_spreads(workflow) if workflow else {}
    shown = [
        MetricView(
            name=name,
            word=WORDS[name],
            unit=METRICS[name],
            spread=spread,
            columns=columns_of([Decimal(number) for number in spread.bins]),
        )
        for name, spread in found.items()
    ]
    context = {"workflows": known, "workflow": workflow, "shown": shown, "most": RUNS}
    context |= {"width": WIDTH, "height": HEIGHT}
    return render(request, "budgets/figures.html", context)

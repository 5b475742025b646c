"""GET /budgets/figures: how steps, depth, tokens, cost and time of a workflow's runs are spread, beside their
caps, and what drifts (R-BUDGET-14)."""

from dataclasses import dataclass
from decimal import Decimal

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from budgets.core.spread import BINS, Spread
from budgets.queries.spending import METRICS, RUNS, spreads, workflows_run
from tenancy.context import tenant
from tenancy.core.roles import Scope
from tenancy.pages import PageRequest, page

WORDS = {"steps": "Steps", "depth": "Depth", "tokens": "Tokens", "cost": "Cost", "seconds": "Time at work"}
WIDTH, HEIGHT = 320, 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One bar of a small chart, in its units."""

    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A metric as the page draws it."""

    name: str
    word: str
    unit: str
    spread: Spread
    columns: tuple[Column, ...]


@require_safe
@page(Scope.READ)
def figures(request: PageRequest) -> HttpResponse:
    """The newest ended runs of a workflow against as many before them."""
    with tenant(request.member.tenant.id):
        known = workflows_run()
        asked = request.GET.get("workflow", "")
        workflow = asked if asked in known else next(iter(known), "")
        found = spreads(workflow) if workflow else {}
    shown = [
        Shown(name=name, word=WORDS[name], unit=METRICS[name], spread=spread, columns=columns_of(spread.bins))
        for name, spread in found.items()
    ]
    context = {"workflows": known, "workflow": workflow, "shown": shown, "most": RUNS}
    context |= {"width": WIDTH, "height": HEIGHT}
    return render(request, "budgets/figures.html", context)


def columns_of(bins: tuple[int, ...]) -> tuple[Column, ...]:
    """The chart's bars, the tallest as high as the chart; what is not nothing is seen."""
    tallest, step = max(bins) or 1, Decimal(WIDTH) / BINS
    return tuple(
        Column(
            x=f"{place * step:.1f}",
            y=f"{HEIGHT - height}",
            width=f"{step - 2:.1f}",
            height=f"{height}",
        )
        for place, number in enumerate(bins)
        if number
        for height in (max(2, number * HEIGHT // tallest),)
    )

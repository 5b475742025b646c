"""The cost of a run to the deployment, as one figure for business use (R-BUDGET-1).

Costs that are not measured here are not part of the figure: no GPU of the deployment works for a run. Call
it inside the tenant's context.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.conf import settings

from approvals.models import Decision
from budgets.core.amounts import ZERO, Vector
from budgets.core.statistics.business_cost import Part, Rates, business_parts
from budgets.queries import get_usage_lines
from orchestrator.runs.models.run import Run

WORDS: Final = {
    "charged": "charged for models and tools", "token": "tokens", "model_call": "model calls",
    "tool_call": "tool calls", "api_call": "calls to the outside", "gpu_second": "GPU seconds",
    "human_review": "decisions by people",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessCost:
    """The figure with its parts, without those that amount to zero."""

    parts: tuple[Part, ...]

    @property
    def usd(self) -> Decimal:
        """The sum of all parts in US$."""
        return sum((part.usd for part in self.parts), ZERO)

    @property
    def lines(self) -> list[tuple[str, Part]]:
        """The parts with their labels."""
        return [(WORDS[part.name], part) for part in self.parts]


def business_of(run: Run) -> BusinessCost:
    """Return the cost of a run so far: its charges, and each kind of work at the deployment's own rates."""
    used = Vector.of(
        {name.value: line.used for name, line in get_usage_lines(run.id).items() if not name.gauge}
    )
    reviews = Decision.objects.filter(request__run_id=run.id).count()
    rates: Rates = settings.INTERLOCK_BUSINESS_RATES
    parts = business_parts(used, rates, human_reviews=reviews)
    return BusinessCost(parts=tuple(part for part in parts if part.usd))

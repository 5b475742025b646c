"""What a run cost the house, as one figure for business use (R-BUDGET-1). Inside the tenant's context.

What nobody measures here is nothing of it: no GPU of our own works for a run.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.conf import settings

from approvals.models import Decision
from budgets.core.amounts import ZERO, Vector
from budgets.core.statistics.business_cost import Part, Rates, business_parts
from budgets.queries import get_usage_lines
from orchestrator.models import Run

WORDS: Final = {
    "charged": "charged for models and tools", "token": "tokens", "model_call": "model calls",
    "tool_call": "tool calls", "api_call": "calls to the outside", "gpu_second": "GPU seconds",
    "human_review": "decisions by people",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Business:
    """The figure with its parts, those alone that come to something."""

    parts: tuple[Part, ...]

    @property
    def usd(self) -> Decimal:
        """The figure."""
        return sum((part.usd for part in self.parts), ZERO)

    @property
    def lines(self) -> list[tuple[str, Part]]:
        """The parts in words."""
        return [(WORDS[part.name], part) for part in self.parts]


def business_of(run: Run) -> Business:
    """What the run cost so far: what it was charged, and each kind of work at the house's own rates."""
    used = Vector.of(
        {name.value: line.used for name, line in get_usage_lines(run.id).items() if not name.gauge}
    )
    reviews = Decision.objects.filter(request__run_id=run.id).count()
    rates: Rates = settings.INTERLOCK_BUSINESS_RATES
    parts = business_parts(used, rates, human_reviews=reviews)
    return Business(parts=tuple(part for part in parts if part.usd))

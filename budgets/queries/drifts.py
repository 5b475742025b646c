"""Which figures of ended runs drift now (R-BUDGET-14). In the tenant's context."""

from typing import Final

from budgets.models import DriftFlag

SHOWN: Final = 10


def standing_drifts() -> list[DriftFlag]:
    """The flags that stand, newest first, as far as a page shows them."""
    return list(DriftFlag.objects.filter(ended_at=None).order_by("-at", "workflow", "metric")[:SHOWN])

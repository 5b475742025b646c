"""What people gave a run, written to its account in the commit that hears of it (R-BUDGET-7)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from budgets.actions import extend_run_account
from budgets.core.errors import OverCeiling
from orchestrator.actions.claimed_run import ClaimedRun
from orchestrator.actions.read_phase import InputsChanged, RetryContext

if TYPE_CHECKING:
    import psycopg


class CeilingLowered(InputsChanged):
    """The tenant's ceiling per run was lowered below what a grant would give."""

    def __init__(self, ceiling: Decimal) -> None:
        super().__init__(str(ceiling))
        self.ceiling = ceiling

    def teach(self, learnt: RetryContext) -> None:
        """The ceiling as it is now."""
        learnt.run_ceiling = self.ceiling


def apply_budget_grants(
    hand: ClaimedRun,
    granted: Sequence[tuple[Mapping[str, Decimal], str]],
    at: datetime,
    cursor: "psycopg.Cursor[Any]",
) -> dict[str, str]:
    """Raise the run's limits; what the record is to bind. Raises CeilingLowered."""
    binds: dict[str, str] = {}
    try:
        for amounts, by in granted:
            binds |= extend_run_account(hand.tenant, hand.run, amounts, by=by, at=at, cursor=cursor)
    except OverCeiling as over:
        raise CeilingLowered(Decimal(over.data["ceiling"])) from over
    return binds

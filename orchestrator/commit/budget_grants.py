"""Write granted budget extensions to the run's account in the commit that receives them (R-BUDGET-7)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from budgets.actions import extend_run_account
from budgets.core.errors import OverCeiling
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.read_phase import InputsChanged, RetryContext

if TYPE_CHECKING:
    import psycopg


class CeilingLowered(InputsChanged):
    """The tenant's ceiling per run was lowered below what a grant would give."""

    def __init__(self, ceiling: Decimal) -> None:
        super().__init__(str(ceiling))
        self.ceiling = ceiling

    def teach(self, learnt: RetryContext) -> None:
        """Pass on the current ceiling."""
        learnt.run_ceiling = self.ceiling


def apply_budget_grants(
    hand: ClaimedRun,
    granted: Sequence[tuple[Mapping[str, Decimal], str]],
    at: datetime,
    cursor: "psycopg.Cursor[Any]",
) -> dict[str, str]:
    """Raise the run's limits and return the digests that the commit's record binds.

    Raises: CeilingLowered.
    """
    binds: dict[str, str] = {}
    try:
        for amounts, by in granted:
            binds |= extend_run_account(hand.tenant, hand.run, amounts, by=by, at=at, cursor=cursor)
    except OverCeiling as over:
        raise CeilingLowered(Decimal(over.data["ceiling"])) from over
    return binds

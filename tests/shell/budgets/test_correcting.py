"""A correction is booked where the effect's money stands, whatever the day it is made on (R-BUDGET-15)."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from budgets.actions import record_cost_correction
from budgets.ledger_verification import verify_ledger, verify_windows
from budgets.queries import tenant_spending
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.budgets import NOON, Figures, Purse, ceilings, inside, open_purse
from tests.proves import proves

D = Decimal
NEXT_DAY = NOON + timedelta(days=1)


def settled(house: House, actual: Figures) -> tuple[Purse, str]:
    """A closed account whose one call held no money and took `actual`, and the call's effect."""
    ceilings(house.tenant.id, daily="10")
    purse = open_purse(house.tenant.id, {"tool_calls": 9, "cost_usd": 9})
    effect, _ = purse.reserve({"tool_calls": 1})
    purse.settle(effect, {"tool_calls": 1, **actual})
    purse.close()
    return purse, effect


def fix(purse: Purse, effect: str, delta: str, at: datetime) -> None:
    """One correction of the call, in a transaction of its own."""
    with inside(purse.tenant):
        record_cost_correction(
            purse.tenant, purse.run, effect_id=effect, delta=D(delta), price_version="2", by=None,
            reason="a test", at=at,
        )  # fmt: skip


def spent(purse: Purse) -> tuple[Decimal, Decimal]:
    """What the first day and the next have spent, of a ledger without a fault."""
    with tenant_transaction(purse.tenant):
        assert [*verify_ledger(), *verify_windows()] == []
        return tenant_spending(NOON)["tenant_day"], tenant_spending(NEXT_DAY)["tenant_day"]


@proves("R-BUDGET-15", part="a correction of a correction")
@pytest.mark.parametrize("delta", ["-0.10", "-0.20", "0.30"])
def test_a_call_corrected_before_is_corrected_on_the_day_that_bears_its_money(
    house: House, delta: str
) -> None:
    purse, effect = settled(house, {})
    fix(purse, effect, "0.20", NOON)
    fix(purse, effect, delta, NEXT_DAY)
    assert spent(purse) == (D("0.20") + D(delta), D(0))


@proves("R-BUDGET-15", part="a call that became dear in flight")
def test_a_call_that_became_dear_in_flight_is_corrected_on_the_day_it_was_settled_on(house: House) -> None:
    purse, effect = settled(house, {"cost_usd": "0.20"})
    fix(purse, effect, "-0.10", NEXT_DAY)
    fix(purse, effect, "-0.10", NEXT_DAY)
    assert spent(purse) == (D(0), D(0))


def test_a_call_that_never_cost_anything_is_corrected_on_the_day_of_its_correction(house: House) -> None:
    purse, effect = settled(house, {})
    fix(purse, effect, "0.20", NEXT_DAY)
    assert spent(purse) == (D(0), D("0.20"))

"""A run's account from its opening to its closing."""

from decimal import Decimal

import pytest

from budgets.actions import close_run_account, extend_run_account, record_cost_correction
from budgets.core.errors import AccountClosed, OverCeiling, ReservationsOpen
from budgets.ledger_verification import verify_ledger
from budgets.models import Account
from budgets.queries import get_usage_lines, list_run_entries, tenant_spending
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.budgets import NOON, ceilings, inside, open_purse
from tests.proves import proves


@proves("R-BUDGET-3", part="extension")
def test_an_extension_adds_to_what_was_granted(house: House) -> None:
    purse = open_purse(house.tenant.id, {"tool_calls": 1})
    purse.reserve({"tool_calls": 1})
    with inside(house.tenant.id) as cursor:
        entries = extend_run_account(
            purse.tenant,
            purse.run,
            {"tool_calls": Decimal(2), "steps": Decimal(9)},
            by="somebody",
            at=NOON,
            cursor=cursor,
        )
        assert get_usage_lines(purse.run)["tool_calls"].left == 2  # type: ignore[index]
        assert get_usage_lines(purse.run)["steps"].limit is None  # type: ignore[index]
        assert verify_ledger(purse.run) == []
    assert len(entries) == 1


def test_an_account_with_something_in_flight_stays_open(house: House) -> None:
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve({"tool_calls": 1})
    with pytest.raises(ReservationsOpen) as refused:
        purse.close()
    assert refused.value.data["effects"] == [effect]
    with inside(house.tenant.id):
        settles = (purse.settlement(effect, {}),)
        assert close_run_account(purse.tenant, purse.run, NOON, settles=settles).entries
        assert Account.objects.get(id=purse.run).closed_at == NOON


def test_closing_twice_is_closing_once(house: House) -> None:
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve({"cost_usd": "0.10"})
    purse.settle(effect, {"cost_usd": "0.04"})
    assert purse.close().entries
    assert not purse.close().entries
    with inside(house.tenant.id) as cursor, pytest.raises(AccountClosed):
        extend_run_account(purse.tenant, purse.run, {"steps": Decimal(1)}, by="x", at=NOON, cursor=cursor)


@proves("R-BUDGET-7", part="the ledger refuses what passes the tenant's ceiling per run")
def test_no_extension_passes_the_tenants_ceiling_for_one_run(house: House) -> None:
    purse = open_purse(house.tenant.id, {"cost_usd": 1, "steps": 2})
    ceilings(house.tenant.id, per_run="1.50")
    more = {"steps": Decimal(1), "cost_usd": Decimal("0.51")}
    with inside(house.tenant.id) as cursor, pytest.raises(OverCeiling) as over:
        extend_run_account(purse.tenant, purse.run, more, by="x", at=NOON, cursor=cursor)
    assert over.value.data == {"ceiling": "1.5", "limit": "1.51"}
    with inside(house.tenant.id) as cursor:
        fits = {**more, "cost_usd": Decimal("0.50")}
        assert extend_run_account(purse.tenant, purse.run, fits, by="x", at=NOON, cursor=cursor)


@proves("R-BUDGET-3")
def test_every_movement_is_a_row_of_the_ledger_with_its_cause(house: House) -> None:
    purse = open_purse(house.tenant.id, {"tool_calls": 5})
    effect, _ = purse.reserve({"tool_calls": 1, "cost_usd": "0.10"})
    other, _ = purse.reserve({"tool_calls": 1})
    purse.settle(effect, {"tool_calls": 1, "cost_usd": "0.12"})
    purse.settle(other, {})
    purse.close()
    with tenant_transaction(house.tenant.id):
        rows = list_run_entries(purse.run)
        assert [(row.cause, row.tenant_line) for row in rows] == [
            ("open", False),
            ("reserve", False),
            ("tranche", True),
            ("reserve", False),
            ("settle", False),
            ("overrun", False),
            ("release", False),
            ("settle", True),
        ]
        assert {row.effect_id for row in rows} == {None, effect, other}
        assert verify_ledger(purse.run) == []


@proves("R-BUDGET-15", part="correction")
@pytest.mark.parametrize("closed", [True, False])
def test_a_wrong_price_is_made_good_by_an_entry_on_run_day_and_month(house: House, closed: bool) -> None:
    ceilings(house.tenant.id, daily="1")
    purse = open_purse(house.tenant.id, {"cost_usd": 1})
    effect, _ = purse.reserve({"cost_usd": "0.50"})
    purse.settle(effect, {"cost_usd": "0.50"})
    if closed:
        purse.close()
    with inside(house.tenant.id):
        record_cost_correction(
            purse.tenant,
            purse.run,
            effect_id=effect,
            delta=Decimal("-0.45"),
            price_version="2",
            by=None,
            reason="the listed price was ten times the true one",
            at=NOON,
        )
        assert get_usage_lines(purse.run)["cost_usd"].used == Decimal("0.05")  # type: ignore[index]
        assert set(tenant_spending(NOON).values()) == {Decimal("0.05")}
        assert verify_ledger() == []

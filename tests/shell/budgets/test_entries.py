"""The ledger as people read it: newest first by the database's clock, page by page (R-BUDGET-3, R-UI-7)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from budgets.queries.entries import EntryFilter, iterate_row_chunks, list_ledger_entries
from budgets.queries.tenant import Window, windows_now
from orchestrator.console.queries.run_contents import ledger_of
from tenancy.db import ids
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.core.budgets.figures import decimals
from tests.factories.budgets import NOON, Purse, ceilings, open_purse
from tests.proves import proves

LATER = NOON + timedelta(minutes=1)


@pytest.fixture
def purse(house: House, monkeypatch: pytest.MonkeyPatch) -> Purse:
    """A run that was opened and reserved for by a process whose clock is years ahead, and settled and
    closed by one whose clock is right."""
    with time_machine.travel(datetime(2040, 1, 1, tzinfo=UTC)):
        monkeypatch.setattr(ids, "_last", 0)
        ceilings(house.tenant.id, daily="5", tranche="0")
        made = open_purse(house.tenant.id)
        effect, _ = made.reserve({"cost_usd": "0.50"})
    monkeypatch.setattr(ids, "_last", 0)
    made.settle(effect, {"cost_usd": "0.20"}, at=LATER)
    made.close(at=LATER)
    return made


def day_of(purse: Purse) -> Window:
    """The tenant's day."""
    with tenant_transaction(purse.tenant):
        return windows_now(NOON)["tenant_day"]


@proves("R-UI-7", part="newest by the database's clock")
def test_entries_are_newest_first_though_another_process_has_a_clock_ahead(purse: Purse) -> None:
    day = day_of(purse)
    with tenant_transaction(purse.tenant):
        whole = list_ledger_entries(EntryFilter(run=purse.run), day, 100)
        tenants = list_ledger_entries(EntryFilter(), day, 100)
        read = [
            row.entry
            for piece in iterate_row_chunks(EntryFilter(run=purse.run), day, 1, 100)
            for row in piece
        ]
        page = list_ledger_entries(EntryFilter(run=purse.run, before=whole[2].id), day, 1)
    assert [entry.cause for entry in whole] == ["settle", "settle", "tranche", "reserve", "open"]
    assert [(entry.cause, entry.at) for entry in tenants] == [("settle", LATER), ("tranche", NOON)]
    assert read == [entry.id for entry in whole[:4]]
    assert [entry.id for entry in page] == [whole[3].id]


def test_a_page_after_an_entry_that_is_none_is_the_first(purse: Purse) -> None:
    day = day_of(purse)
    with tenant_transaction(purse.tenant):
        assert list_ledger_entries(EntryFilter(before=fresh_id()), day, 9) == list_ledger_entries(
            EntryFilter(), day, 9
        )


@proves("R-UI-3", part="balances by the database's clock")
def test_a_runs_balance_is_counted_back_in_the_order_of_time(purse: Purse) -> None:
    with tenant_transaction(purse.tenant):
        book = ledger_of(purse.run)
    balances = [(one.entry.cause, one.balance_used, one.balance_reserved) for one in book.entries]
    assert balances[0] == ("settle", Decimal("0.20"), Decimal(0))
    assert balances[1] == ("reserve", *decimals(0, "0.50"))
    assert balances[-1][1:] == decimals(0, 0)

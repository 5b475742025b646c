"""A tenant's ceilings: by day and month of its own time zone, never passed by a cent."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from uuid import UUID

import psycopg
import pytest
import time_machine
from django.db import connections

from budgets.actions import Reserve, charge_tenant_check, ensure_tenant_windows
from budgets.actions.ceilings import change_ceilings, newest_ceilings
from budgets.actions.rates import change_rates, newest_rates
from budgets.core.ceilings import Ceilings
from budgets.core.errors import CeilingReached
from budgets.core.rates import Rates
from budgets.ledger_verification import verify_ledger
from budgets.models import Account, Line, TenantCeiling, Tranche
from budgets.queries import get_usage_lines, list_run_entries, tenant_spending
from budgets.queries.tenant import ceiling_versions
from tenancy.db import ids
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.core.budgets.figures import decimals
from tests.factories.budgets import NOON, Purse, amounts, ceilings, inside, open_purse, until_it_waits
from tests.factories.tenancy import make_tenant
from tests.proves import proves

MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)


def windows(tenant_id: UUID, kind: str = "tenant_day") -> list[tuple[Decimal, ...]]:
    """(used, reserved) of the tenant's windows in order."""
    with tenant_transaction(tenant_id):
        lines = Line.objects.filter(account__kind=kind).order_by("account__window_start")
        return [(line.used, line.reserved) for line in lines]


def whole(tenant_id: UUID) -> bool:
    """Whether the tenant's whole ledger proves."""
    with tenant_transaction(tenant_id):
        return verify_ledger() == []


@proves("R-BUDGET-9", part="per run")
def test_the_tenants_ceiling_per_run_tightens_the_runs_limit(house: House) -> None:
    ceilings(house.tenant.id, per_run="0.50")
    purse = open_purse(house.tenant.id, {"cost_usd": 5})
    refused = purse.reserve({"cost_usd": "0.51"})[1].refused
    assert refused is not None
    assert (refused.account, refused.limit) == ("run", Decimal("0.50"))


@proves("R-BUDGET-9", part="tier")
def test_a_tenant_without_ceilings_of_its_own_has_those_of_its_tier(house: House) -> None:
    with inside(house.tenant.id):
        left = ensure_tenant_windows(house.tenant.id, NOON)
    assert (left.day_left, left.month_left) == decimals(100, 1000)


@proves("R-BUDGET-9", part="day")
def test_the_day_refuses_what_the_run_would_allow(house: House) -> None:
    ceilings(house.tenant.id, daily="0.10")
    purse = open_purse(house.tenant.id)
    purse.reserve({"cost_usd": "0.08"})
    refused = purse.reserve({"cost_usd": "0.03"})[1].refused
    assert refused is not None
    assert (refused.account, refused.left) == ("tenant_day", Decimal("0.02"))
    assert whole(house.tenant.id)


@proves("R-BUDGET-9", part="month")
def test_the_month_refuses_on_another_day(house: House) -> None:
    ceilings(house.tenant.id, monthly="0.10")
    spender = open_purse(house.tenant.id)
    effect, _ = spender.reserve({"cost_usd": "0.08"})
    spender.settle(effect, {"cost_usd": "0.08"})
    spender.close()
    later = open_purse(house.tenant.id, at=NOON + timedelta(days=3))
    refused = later.reserve({"cost_usd": "0.03"}, at=NOON + timedelta(days=3))[1].refused
    assert refused is not None
    assert refused.account == "tenant_month"


def test_a_run_touches_its_tenants_lines_rarely_and_gives_the_rest_back(house: House) -> None:
    ceilings(house.tenant.id, daily="5")
    purse = open_purse(house.tenant.id, {"cost_usd": 1})
    for _ in range(10):
        effect, _ = purse.reserve({"cost_usd": "0.03"})
        purse.settle(effect, {"cost_usd": "0.02"})
    with tenant_transaction(house.tenant.id):
        assert [entry.cause for entry in list_run_entries(purse.run) if entry.tenant_line] == ["tranche"]
        assert tenant_spending(NOON)["tenant_day"] == Decimal("0.20")
    assert windows(house.tenant.id) == [decimals(0, "0.25")]
    purse.close()
    assert windows(house.tenant.id) == [decimals("0.20", 0)]
    assert whole(house.tenant.id)


def test_a_short_tranche_is_refilled(house: House) -> None:
    ceilings(house.tenant.id, daily="5", tranche="0.05")
    purse = open_purse(house.tenant.id)
    for _ in range(4):
        effect, _ = purse.reserve({"cost_usd": "0.03"})
        purse.settle(effect, {"cost_usd": "0.03"})
    with tenant_transaction(house.tenant.id):
        causes = [entry.cause for entry in list_run_entries(purse.run) if entry.tenant_line]
    assert causes == ["tranche", "refill", "refill", "refill"]
    assert whole(house.tenant.id)


@proves("R-BUDGET-9", part="midnight")
def test_a_call_across_midnight_settles_on_the_window_that_reserved_it(house: House) -> None:
    ceilings(house.tenant.id, daily="1")
    purse = open_purse(house.tenant.id)
    before, _ = purse.reserve({"cost_usd": "0.10"}, at=MIDNIGHT - timedelta(seconds=1))
    after, _ = purse.reserve({"cost_usd": "0.10"}, at=MIDNIGHT + timedelta(seconds=1))
    purse.settle(before, {"cost_usd": "0.07"}, at=MIDNIGHT + timedelta(seconds=2))
    purse.settle(after, {"cost_usd": "0.02"}, at=MIDNIGHT + timedelta(seconds=3))
    purse.close(at=MIDNIGHT + timedelta(seconds=4))
    assert windows(house.tenant.id) == [decimals("0.07", 0), decimals("0.02", 0)]
    assert windows(house.tenant.id, "tenant_month") == [decimals("0.09", 0)]
    assert whole(house.tenant.id)


@proves("R-BUDGET-9", part="overrun across midnight")
def test_yesterdays_overrun_is_booked_with_todays_reservation_though_yesterday_is_full(house: House) -> None:
    ceilings(house.tenant.id, daily="0.10", tranche="0")
    purse = open_purse(house.tenant.id)
    before, _ = purse.reserve({"cost_usd": "0.10"}, at=MIDNIGHT - timedelta(seconds=1))
    after = fresh_id().hex
    posting = purse.post(
        settles=(purse.settlement(before, {"cost_usd": "0.13"}),),
        reserves=(Reserve(effect_id=after, amounts=amounts({"cost_usd": "0.05"})),),
        at=MIDNIGHT + timedelta(seconds=1),
    )
    assert posting.refused is None
    purse.held[after] = amounts({"cost_usd": "0.05"})
    purse.settle(after, {"cost_usd": "0.02"}, at=MIDNIGHT + timedelta(seconds=2))
    purse.close(at=MIDNIGHT + timedelta(seconds=3))
    assert windows(house.tenant.id) == [decimals("0.13", 0), decimals("0.02", 0)]
    assert whole(house.tenant.id)


@proves("R-BUDGET-9", part="time zone in the database")
def test_a_tenants_day_is_that_of_its_time_zone(house: House) -> None:
    berlin = make_tenant(time_zone="Europe/Berlin").id
    ceilings(berlin, daily="0.10", at=MIDNIGHT - timedelta(hours=1, minutes=1))
    purse = open_purse(berlin)
    purse.reserve({"cost_usd": "0.10"}, at=MIDNIGHT - timedelta(hours=1, seconds=1))
    assert purse.reserve({"cost_usd": "0.10"}, at=MIDNIGHT - timedelta(hours=1))[1].refused is None
    with tenant_transaction(berlin):
        starts = Account.objects.filter(kind="tenant_day").values_list("window_start", flat=True)
        assert [start and start.hour for start in starts] == [23, 23]


def test_a_changed_time_zone_never_makes_two_days_of_one_moment(house: House) -> None:
    moved = make_tenant(time_zone="UTC")
    with inside(moved.id):
        ensure_tenant_windows(moved.id, NOON)
    type(moved).objects.filter(id=moved.id).update(time_zone="America/New_York")
    with inside(moved.id):
        ensure_tenant_windows(moved.id, NOON + timedelta(hours=13))
        days = Account.objects.filter(kind="tenant_day").order_by("window_start")
        assert [days[1].window_start, days[1].window_end] == [
            days[0].window_end,
            MIDNIGHT + timedelta(hours=5),
        ]


@proves("R-BUDGET-9", part="no tranche outlives its month")
def test_after_a_changed_time_zone_a_tranche_ends_with_its_month(house: House) -> None:
    moved = make_tenant(time_zone="UTC")
    last_days = datetime(2026, 11, 29, 14, tzinfo=UTC)
    with inside(moved.id):
        ensure_tenant_windows(moved.id, last_days)
    type(moved).objects.filter(id=moved.id).update(time_zone="America/New_York")
    ceilings(moved.id, daily="9", monthly="9", at=last_days)
    for hours in (10.5, 20):  # the cut-off day of the old zone's end, then a whole one of the new
        with inside(moved.id):
            ensure_tenant_windows(moved.id, last_days + timedelta(hours=hours))
    turn = datetime(2026, 12, 1, tzinfo=UTC)
    purse = open_purse(moved.id, at=turn - timedelta(hours=1))
    for at in (turn - timedelta(hours=1), turn + timedelta(hours=1)):
        effect, posting = purse.reserve({"cost_usd": "0.10"}, at=at)
        assert posting.refused is None
        purse.settle(effect, {"cost_usd": "0.10"}, at=at)
    with inside(moved.id):
        first, second = Tranche.objects.select_related("day", "month").order_by("opened_at")
        assert (first.day, first.ends_at) == (second.day, turn)
        assert first.month != second.month
        for tranche in (first, second):
            assert tranche.month.window_end is not None
            assert tranche.ends_at <= tranche.month.window_end
    purse.close(at=turn + timedelta(hours=2))
    with inside(moved.id):
        months = Line.objects.filter(account__kind="tenant_month").order_by("account__window_start")
        assert [line.used for line in months] == [Decimal("0.10"), Decimal("0.10")]
    assert whole(moved.id)


@proves("R-BUDGET-9", part="ceilings set while a day is opened")
@pytest.mark.parametrize("first", ["set", "opened"])
def test_a_day_opened_while_its_ceilings_are_set_has_them(
    house: House, superuser: psycopg.Connection, first: str
) -> None:
    late, early = MIDNIGHT - timedelta(seconds=1), MIDNIGHT + timedelta(seconds=1)
    ceilings(house.tenant.id, daily="9", at=NOON)

    def set_them() -> None:
        ceilings(house.tenant.id, daily="5", at=late)

    def open_it() -> None:
        with inside(house.tenant.id):
            ensure_tenant_windows(house.tenant.id, early)

    one, other = (set_them, open_it) if first == "set" else (open_it, set_them)

    def elsewhere() -> None:
        try:
            other()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with inside(house.tenant.id) as cursor:
            one()
            going = pool.submit(elsewhere)
            until_it_waits(superuser, cursor, going)
        going.result()
    with inside(house.tenant.id):
        assert ensure_tenant_windows(house.tenant.id, late).day_left == Decimal(5)
        assert ensure_tenant_windows(house.tenant.id, early).day_left == Decimal(5)


@proves("B8")
@proves("R-SEC-6", part="ceilings")
def test_a_ceiling_lowered_below_todays_spend_stops_only_what_comes_next(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve({"cost_usd": "0.50"})
    ceilings(house.tenant.id, daily="0.20")
    assert purse.settle(effect, {"cost_usd": "0.40"}).refused is None
    refused = purse.reserve({"cost_usd": "0.01"})[1].refused
    assert refused is not None
    assert (refused.account, refused.left) == ("tenant_day", Decimal(0))
    with tenant_transaction(house.tenant.id):
        assert TenantCeiling.objects.count() == 2
    assert whole(house.tenant.id)


def test_admission_hears_when_the_ceiling_opens_again(house: House) -> None:
    ceilings(house.tenant.id, daily="0.10", tranche="0")
    purse = open_purse(house.tenant.id)
    with inside(house.tenant.id):
        charge_tenant_check(house.tenant.id, NOON)
    effect, _ = purse.reserve({"cost_usd": "0.10"})
    assert _opens_in(house) == 30, "what is only held may come back at any moment"
    purse.settle(effect, {"cost_usd": "0.10"})
    purse.close()
    assert _opens_in(house) == 12 * 3600


def _opens_in(house: House) -> int:
    """The seconds after which a refused submission may be tried again."""
    with inside(house.tenant.id), pytest.raises(CeilingReached) as reached:
        charge_tenant_check(house.tenant.id, NOON)
    seconds: int = reached.value.data["retry_after"]
    return seconds


@proves("R-BUDGET-16", part="zero ceiling")
def test_a_ceiling_of_zero_admits_runs_that_spend_nothing(house: House) -> None:
    ceilings(house.tenant.id, daily="0", monthly="0")
    with inside(house.tenant.id):
        charge_tenant_check(house.tenant.id, NOON)
    purse = open_purse(house.tenant.id)
    assert purse.reserve({"tool_calls": 1})[1].refused is None
    assert purse.reserve({"cost_usd": "0.01"})[1].refused is not None


@proves("R-BUDGET-9", part="concurrency")
@proves("R-BUDGET-2", part="concurrency")
@proves("B2")
@pytest.mark.parametrize("tranche", ["0", "0.25"])
def test_a_hundred_runs_at_once_never_pass_a_ceiling_by_a_cent(
    house: House, superuser: psycopg.Connection, tranche: str
) -> None:
    ceilings(house.tenant.id, daily="1.00", tranche=tranche)
    purses = [open_purse(house.tenant.id, {"cost_usd": 1}) for _ in range(100)]
    most, over = Decimal(0), threading.Event()
    watching = threading.Event()

    def watch() -> None:
        nonlocal most
        query = """SELECT max(l.used + l.reserved)
                     FROM budgets_line l JOIN budgets_account a ON a.id = l.account_id
                    WHERE a.kind = 'tenant_day' AND a.tenant_id = %s"""
        while not over.is_set():
            row = superuser.execute(query, [house.tenant.id]).fetchone()
            most = max(most, row[0] if row else Decimal(0))
            watching.set()

    granted = spend_at_once(purses, watch, watching, over)
    assert most <= Decimal("1.00")
    assert granted >= 1
    with tenant_transaction(house.tenant.id):
        spent = tenant_spending(NOON)["tenant_day"]
        assert spent <= Decimal("1.00")
        assert spent == sum(line.used for purse in purses for line in get_usage_lines(purse.run).values())
        assert not Tranche.objects.filter(closed_at=None).exists()
    assert windows(house.tenant.id)[0][1] == 0
    assert whole(house.tenant.id)


def spend_at_once(
    purses: list[Purse], watch: object, watching: threading.Event, over: threading.Event
) -> int:
    """Each run makes three calls of seven cents from one of eight threads, then closes. How many were
    granted."""
    watcher = threading.Thread(target=watch)  # type: ignore[arg-type]
    watcher.start()
    watching.wait(5)
    ticks = count()

    def one(purse: Purse) -> int:
        granted = 0
        try:
            for _ in range(3):
                effect, posting = purse.reserve({"cost_usd": "0.07"})
                if posting.refused is None:
                    granted += 1
                    purse.settle(effect, {"cost_usd": "0.05" if next(ticks) % 2 else "0.07"})
            purse.close()
        finally:
            connections.close_all()
        return granted

    try:
        with ThreadPoolExecutor(8) as pool:
            return sum(pool.map(one, purses))
    finally:
        over.set()
        watcher.join()


@proves("R-BUDGET-2", part="one run from many threads")
def test_one_run_posted_to_from_many_threads_keeps_its_limit(house: House) -> None:
    purse = open_purse(house.tenant.id, {"tool_calls": 10, "cost_usd": "0.30"})

    def one(_: int) -> bool:
        try:
            return purse.reserve({"tool_calls": 1, "cost_usd": "0.01"})[1].refused is None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(24))) == 10
    assert whole(house.tenant.id)


@proves("R-BUDGET-9", part="the newest by the database's clock")
def test_what_was_set_last_holds_though_another_process_has_a_clock_ahead(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with time_machine.travel(datetime(2040, 1, 1, tzinfo=UTC)):
        monkeypatch.setattr(ids, "_last", 0)
        change_ceilings(house.tenant.id, daily(50), by=None, reason="a process of 2040")
        change_rates(house.tenant.id, Rates(queue_depth=50), by=None, reason="a process of 2040")
    monkeypatch.setattr(ids, "_last", 0)
    change_ceilings(house.tenant.id, daily(5), by=None, reason="less")
    change_rates(house.tenant.id, Rates(queue_depth=5), by=None, reason="less")
    with tenant_transaction(house.tenant.id):
        assert newest_ceilings(house.tenant.id, raw_cursor()) == daily(5)
        assert newest_rates(house.tenant.id, raw_cursor()) == Rates(queue_depth=5)
        assert [row.daily_usd for row in ceiling_versions()] == [Decimal(5), Decimal(50)]


def daily(usd: int) -> Ceilings:
    """Ceilings that bound a day alone."""
    return Ceilings(daily_usd=Decimal(usd))

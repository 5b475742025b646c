"""Many costly runs against one tenant's ceiling, the way back, and a process whose clock is wrong."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from threading import Event as Flag
from threading import Thread
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
import time_machine
from django.db import connections

from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from budgets.core.errors import CeilingReached, CeilingTooNear
from budgets.core.pricing import ModelPrice
from budgets.ledger_verification import verify_ledger, verify_windows
from budgets.models import Alert, Line
from budgets.queries import get_usage_lines
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.runs import result_of
from orchestrator.worker.run_loop import Worker
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, fresh_worker, make_world
from tests.proves import proves
from traces.models import Event

SUM = "How much is (12 + 30) * 2?"
TAKEN = """
SELECT l.used + l.reserved FROM budgets_line l JOIN budgets_account a ON a.id = l.account_id
 WHERE a.kind = 'tenant_day' AND a.tenant_id = %s"""

RESERVED = """
SELECT sum(l.reserved) FROM budgets_line l JOIN budgets_account a ON a.id = l.account_id
 WHERE a.kind IN ('tenant_day', 'tenant_month') AND a.tenant_id = %s"""


@pytest.fixture
def world(house: House, monkeypatch: pytest.MonkeyPatch) -> World:
    """A house in which the scripted model costs what a dear one does."""
    dear = ModelPrice(
        provider="scripted", model="scripted", input=Decimal("0.00001"), output=Decimal("0.00005"),
        source="scripted", version="dear",
    )  # fmt: skip
    monkeypatch.setattr("orchestrator.llm.gateways.catalog.SCRIPTED_PRICE", dear)
    return make_world(house)


def ceiling(world: World, daily: str | None, tranche: str | None = None) -> None:
    """Set the day's ceiling alone."""
    amounts = {"daily_usd": daily, "tranche_usd": tranche}
    change_ceilings(world.id, Ceilings.model_validate(amounts), by=world.people.admin.id, reason="a test")


@dataclass
class Watch:
    """Looks at the tenant's day over and over while others work: the most that was ever taken of it."""

    superuser: psycopg.Connection
    tenant: UUID
    most: Decimal = Decimal(0)
    looks: int = 0
    over: Flag = field(default_factory=Flag)

    def look(self) -> None:
        """Until it is over."""
        while not self.over.is_set():
            row = self.superuser.execute(TAKEN, (self.tenant,)).fetchone()
            self.most, self.looks = max(self.most, row[0] if row else Decimal(0)), self.looks + 1


def costly_runs(world: World, superuser: psycopg.Connection, number: int) -> None:
    """So many runs at once against a ceiling that bears a few of them."""
    runs = [world.submit("tool-loop", SUM) for _ in range(number)]
    watch = Watch(superuser, world.id)
    watcher = Thread(target=watch.look)
    watcher.start()
    workers = [fresh_worker() for _ in range(4)]

    def drive(given: tuple[int, UUID]) -> None:
        try:
            workers[given[0] % len(workers)].advance(given[1])
        finally:
            connections.close_all()

    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(drive, enumerate(runs)))
    finally:
        watch.over.set()
        watcher.join()
    assert watch.looks > number // 4
    assert Decimal("0.45") < watch.most <= Decimal("0.50")
    judge(world, runs)


def judge(world: World, runs: list[UUID]) -> None:
    """Each run has ended, those refused say by which ceiling, and every balance is what its ledger adds up
    to."""
    with tenant_transaction(world.id):
        ended = Run.objects.filter(id__in=runs)
        said = Event.objects.filter(run_id__in=runs, kind="reservation_refused").order_by("run_id", "seq")
        refused = {event.run_id: orjson.loads(bytes(event.body)) for event in said}
        assert Counter(run.terminal_code for run in ended).keys() == {"SUCCESS", "BUDGET_EXHAUSTED"}
        for run in ended:
            if run.terminal_code == "BUDGET_EXHAUSTED":
                says_why(run, refused[run.id])
        used = Line.objects.filter(account_id__in=runs, dimension="cost_usd").values_list("used", flat=True)
        assert sum(used, Decimal(0)) <= Decimal("0.50")
        assert verify_ledger(open_effects=()) == []
        assert verify_windows() == []
        assert Alert.objects.filter(threshold__gte=95, kind="tenant_day").exclude(wanted_usd=None).exists()


def says_why(run: Run, refused: dict[str, Any]) -> None:
    """A run that was stopped by its tenant's day names it, in its last refusal, its reason and its result."""
    assert (refused["dimension"], refused["account"]) == ("cost_usd", "tenant_day")
    assert Decimal(refused["limit"]) == Decimal("0.50")
    assert Decimal(refused["left"]) < Decimal(refused["wanted"])
    assert "cost" in run.reason
    assert (result_of(run) or {})["status"]


@pytest.mark.timeout(300)
@proves("R-BUDGET-9", part="two hundred runs through the ring")
@proves("B2", part="two hundred runs through the ring")
@pytest.mark.slow
def test_two_hundred_costly_runs_never_pass_the_days_ceiling(
    world: World, superuser: psycopg.Connection
) -> None:
    ceiling(world, "0.50", "0.05")
    costly_runs(world, superuser, 200)


@proves("R-BUDGET-10", part="a run stops with what it has, and the way back")
def test_a_run_stops_at_the_ceiling_and_the_next_goes_on_once_it_is_raised(world: World) -> None:
    ceiling(world, "0.50", "0")
    spender = world.submit("tool-loop", SUM)
    late = world.submit("tool-loop", SUM)
    assert world.drive(spender).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        spent = get_usage_lines(spender)
    cost = next(line.used for name, line in spent.items() if name == "cost_usd")
    ceiling(world, str(cost), "0")
    with pytest.raises(CeilingReached) as full:
        world.submit("tool-loop", SUM)
    assert 1 <= full.value.data["retry_after"] <= 25 * 3600
    stopped = world.drive(late)
    assert stopped.terminal_code == "BUDGET_EXHAUSTED"
    assert world.result(late)["next_safe_action"]
    world.sound(late)
    ceiling(world, "0.50", "0")
    assert world.drive(world.submit("tool-loop", SUM)).terminal_code == "SUCCESS"


@proves("R-BUDGET-10", part="too little left for a run to begin is refused")
@pytest.mark.parametrize("workflow", ["tool-loop", "support-refund"])
def test_a_task_that_could_not_begin_is_turned_away_with_the_ceiling_named(
    world: World, workflow: str
) -> None:
    inputs = {"order_id": "A-1001"} if workflow == "support-refund" else {}
    ceiling(world, "0.001", "0")
    with pytest.raises(CeilingTooNear) as near:
        world.submit(workflow, SUM, inputs=inputs)
    assert (near.value.data["window"], near.value.data["left"], near.value.data["limit"]) == (
        "daily", "0.001", "0.001",
    )  # fmt: skip
    assert Decimal(near.value.data["wanted"]) > Decimal("0.001")
    assert 1 <= near.value.data["retry_after"] <= 25 * 3600
    ceiling(world, "5", "0")
    world.submit(workflow, SUM, inputs=inputs)


@proves("R-BUDGET-10", part="who turns tasks away tells")
def test_administrators_hear_of_a_window_that_turns_tasks_away(world: World) -> None:
    spender = world.submit("tool-loop", SUM)
    assert world.drive(spender).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        cost = next(line.used for name, line in get_usage_lines(spender).items() if name == "cost_usd")
    ceiling(world, str(cost * 100 / Decimal("97.5")), "0")
    with pytest.raises(CeilingTooNear):
        world.submit("tool-loop", SUM)
    with tenant_transaction(world.id):
        (near,) = Alert.objects.exclude(wanted_usd=None)
        assert (near.threshold, near.kind) == (97, "tenant_day")
    # What is too little for this one may do for another.
    with pytest.raises(CeilingTooNear):
        world.submit("tool-loop", SUM)
    free = world.submit("tool-loop", SUM, budget={"cost_usd": "0.000001"})
    assert world.drive(free).terminal_code == "BUDGET_EXHAUSTED"


@proves("R-BUDGET-10", part="only money fills a window")
def test_a_run_that_is_stopped_for_calls_closes_nothing_to_others(world: World, company: Company) -> None:
    spender = world.submit("tool-loop", SUM)
    assert world.drive(spender).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        cost = next(line.used for name, line in get_usage_lines(spender).items() if name == "cost_usd")
    inputs = {"order_id": "A-1001"}
    with company_at(company.url):
        short = world.submit("support-refund", "Refund it", inputs=inputs, budget={"external_calls": 1})
        ceiling(world, str(cost * 100 / 96), "0")
        assert world.drive(short).terminal_code == "BUDGET_EXHAUSTED"
    (refused,) = world.said(short, "reservation_refused")
    assert refused["account"] == "estimate"
    with tenant_transaction(world.id):
        assert not Alert.objects.exclude(wanted_usd=None).exists()


@proves("R-BUDGET-9", part="who waits holds nothing ahead")
def test_runs_that_wait_for_people_leave_the_day_to_others(
    world: World, company: Company, superuser: psycopg.Connection
) -> None:
    ceiling(world, "2.00")
    inputs = {"service": "checkout"}
    with company_at(company.url):
        waiting = [world.submit("incident-triage", "Find out.", inputs=inputs) for _ in range(3)]
        assert {world.drive(run).status for run in waiting} == {"awaiting_gate"}
        row = superuser.execute(RESERVED, (world.id,)).fetchone()
        assert row is not None
        assert row[0] == 0
        world.decide(world.open_requests(waiting[0])[0], world.people.approver)
        assert world.drive(waiting[0]).terminal_code == "SUCCESS"
    for run in waiting:
        with tenant_transaction(world.id):
            assert any(line.used for name, line in get_usage_lines(run).items() if name == "cost_usd")
        world.sound(run)
    with tenant_transaction(world.id):
        assert verify_windows() == []


@proves("B4")
@proves("R-BUDGET-2", part="the database's time")
@pytest.mark.parametrize("hours", [2, -2])
def test_a_process_whose_clock_is_wrong_ends_no_run_early_and_none_late(world: World, hours: int) -> None:
    wrong = time.time() + timedelta(hours=hours).total_seconds()
    with time_machine.travel(wrong, tick=True):
        run = world.submit("tool-loop", SUM, budget={"wall_clock_seconds": 60})
        found = world.drive(run)
        assert found.terminal_code == "SUCCESS"
        with tenant_transaction(world.id):
            seconds = next(
                line.used for name, line in get_usage_lines(run).items() if name == "wall_clock_seconds"
            )
        assert seconds < 60
        spent = world.submit("tool-loop", SUM, budget={"wall_clock_seconds": 0})
        assert world.drive(spent).terminal_code == "TIMEOUT"


@proves("B4", part="a goal's deadline goes by the database's time")
@pytest.mark.parametrize("hours", [2, -2])
def test_a_deadline_is_kept_to_whatever_the_clock_of_the_process_says(world: World, hours: int) -> None:
    with tenant_transaction(world.id):
        now = database_now()
    with time_machine.travel(time.time() + timedelta(hours=hours).total_seconds(), tick=True):
        late = world.submit("tool-loop", SUM, deadline=now + timedelta(seconds=2))
        early = world.submit("tool-loop", SUM, deadline=now + timedelta(hours=1))
        assert world.drive(early).terminal_code == "SUCCESS"
        with tenant_transaction(world.id):
            raw_cursor().execute("SELECT pg_sleep_until(%s)", (now + timedelta(seconds=2),))
        ended = world.drive(late)
    assert (ended.terminal_code, ended.reason) == ("TIMEOUT", "deadline_passed")
    world.sound(late)


@proves("B4")
@pytest.mark.parametrize("hours", [2, -2])
def test_a_clock_that_jumps_while_a_run_is_under_way_moves_nothing(world: World, hours: int) -> None:
    run = world.submit("tool-loop", SUM, budget={"wall_clock_seconds": 60})
    away = timedelta(hours=hours).total_seconds()
    jumps, made = iter([away, -away]), []
    with time_machine.travel(time.time(), tick=True) as clock:

        def jump(point: str) -> None:
            if point == "performed" and (by := next(jumps, None)) is not None:
                clock.shift(by)
                made.append(by)

        world.worker = Worker(name="jumps", performer=world.worker.performer, fault=jump)
        assert world.drive(run).terminal_code == "SUCCESS"
    assert made == [away, -away]
    with tenant_transaction(world.id):
        lines = get_usage_lines(run)
    limited = {name: line for name, line in lines.items() if line.limit is not None}
    assert "wall_clock_seconds" in limited
    assert all(line.used + line.reserved <= (line.limit or 0) for line in limited.values())
    world.sound(run)

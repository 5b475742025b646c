"""A process whose clock is wrong by hours: leases, windows, gates and what is written down go by the
database's time (B4)."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import psycopg
import pytest
import time_machine
from django.conf import settings

from approvals.models import Request
from budgets.models import Account
from orchestrator import bundled_content
from orchestrator.commit.approval_timers import expire_gates_of
from orchestrator.publishing.actions.versions import publish_boundary
from orchestrator.runs.models.run import Run
from orchestrator.tenants.queries.cross_tenant import due_runs
from orchestrator.worker.leases import claim_lease, release_lease
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.world import World, make_world
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves
from traces.models import Event

SUM = "How much is (12 + 30) * 2?"
# Two hours either way, and far enough for another day everywhere.
HOURS = [2, -2, 26, -26]


@pytest.fixture
def world(house: House) -> World:
    """A furnished house."""
    return make_world(house)


@pytest.fixture
def wrong(request: pytest.FixtureRequest) -> Iterator[timedelta]:
    """This process's clock is off by the parameter's hours."""
    off: timedelta = timedelta(hours=request.param)
    with time_machine.travel(time.time() + off.total_seconds(), tick=True):
        yield off


@proves("B4", part="leases")
@proves("R-SESS-2", part="by the database's clock")
@pytest.mark.parametrize("wrong", HOURS, indirect=True)
def test_a_lease_lives_and_dies_by_the_databases_clock(
    world: World, superuser: psycopg.Connection, wrong: timedelta
) -> None:
    run = world.submit("tool-loop", SUM)
    before = database_now()
    held = claim_lease(world.id, run, "one")
    assert held is not None
    until = world.run(run).lease_until
    assert until is not None
    assert before < until - timedelta(seconds=settings.INTERLOCK_LEASE_SECONDS) < database_now()
    assert claim_lease(world.id, run, "another") is None
    assert run not in due_runs(100)
    Clock(superuser).lease_dies(run)
    taken = claim_lease(world.id, run, "another")
    assert taken is not None
    assert taken.takeovers == held.takeovers + 1
    release_lease(world.id, run, "another", taken.fence)
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("B4", part="windows and what is written down")
@proves("R-BUDGET-9", part="windows by the database's clock")
@pytest.mark.parametrize("wrong", HOURS, indirect=True)
def test_money_is_booked_on_the_databases_day_and_everything_is_written_at_its_time(
    world: World, wrong: timedelta
) -> None:
    before = database_now()
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).terminal_code == "SUCCESS"
    after = database_now()
    with tenant_transaction(world.id):
        windows = Account.objects.exclude(kind="run")
        in_force = windows.filter(window_start__lte=after, window_end__gt=before).count()
        all_of_them = windows.count()
        times: list[datetime] = list(Event.objects.filter(run_id=run).values_list("at", flat=True))
        found = Run.objects.get(id=run)
    assert (in_force, all_of_them) == (2, 2)
    assert found.started_at is not None
    assert found.finished_at is not None
    ordered = [before, found.created_at, found.started_at, found.finished_at, after]
    assert ordered == sorted(ordered)
    assert all(before <= at <= after for at in times)
    world.sound(run)


@proves("B4", part="gates")
@proves("R-APPR-7", part="by the database's clock")
@pytest.mark.parametrize("wrong", [2, -2], indirect=True)
def test_a_gate_expires_by_the_databases_clock(
    world: World, superuser: psycopg.Connection, wrong: timedelta
) -> None:
    short, clock = timedelta(minutes=30), Clock(superuser)
    clock.park_the_rest()
    asking = bundled_content.get_bundled_boundary("tool-loop-default").evolve(
        slug="asking", on_exhaustion="request"
    )
    with tenant_transaction(world.id):
        publish_boundary(world.id, asking, by=None)
    run = world.submit("tool-loop", SUM, boundary="asking", budget={"model_turns": 1})
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    assert request.expires_at is not None
    assert request.expires_at > database_now() + short
    assert (run in due_runs(100), expire_gates_of(run)) == (False, 0)
    clock.gates_expire(run)
    assert run in due_runs(100)
    assert expire_gates_of(run) == 1
    with tenant_transaction(world.id):
        assert Request.objects.get(id=request.id).status == "expired"
    assert world.drive(run).terminal_code is not None

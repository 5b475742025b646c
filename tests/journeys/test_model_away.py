"""A model's server dies under its runs, and comes back: they wait, and go on by themselves (R-TOOL-22)."""

from collections.abc import Iterator
from threading import Event, Thread
from time import monotonic, sleep
from uuid import UUID

import psycopg
import pytest
from pytest_django import Settings

from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.domain.graph import MODEL_PATIENCE_SECONDS
from orchestrator.core.domain.run_state import ModelWait
from orchestrator.llm.gateways import catalog
from orchestrator.llm.models import ModelTurn
from orchestrator.runs.actions import emergency_stop
from orchestrator.runs.actions.run_signals import cancel, pause
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.runs import state_now
from orchestrator.tenants.queries.cross_tenant import called_up_runs, due_runs
from orchestrator.worker.sweeper import Sweeper
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import said
from tests.factories.foreign import Obedient, called, foreign
from tests.factories.tenancy import make_people, make_tenant
from tests.factories.world import World, company_at, fresh_worker, make_world
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves

LOOK = called("orders.lookup", order_id="A-1001")
GOAL = "Where is order A-1001?"
PATIENCE = 180.0


@pytest.fixture
def model(settings: Settings) -> Iterator[Obedient]:
    """The one model there is, on this machine."""
    settings.INTERLOCK_MODEL_AT_ONCE = 100
    server = Obedient(LOOK)
    with foreign(settings, server):
        yield server


@pytest.fixture
def world(
    house: House,
    company: Company,
    model: Obedient,
    superuser: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """A furnished house; what the sweep finds it drives itself, for there is nobody else."""
    Clock(superuser).park_the_rest()
    superuser.execute("DELETE FROM orchestrator_circuitrow WHERE kind = 'model'")
    superuser.execute("DELETE FROM orchestrator_modelturn")
    monkeypatch.setattr("orchestrator.worker.sweeper.enqueue_run", lambda _: False)
    with company_at(company.url):
        yield make_world(house)


def away_of(world: World, run: UUID) -> ModelWait | None:
    """The model that the run waits for."""
    with tenant_transaction(world.id):
        return state_now(run).away


def until_it_waits(world: World, run: UUID, by: str) -> ModelWait:
    """Drive the run until it waits in this way; its own short waits are waited out."""
    until = monotonic() + PATIENCE
    while monotonic() < until:
        found = world.drive(run)
        assert Status(found.status) not in TERMINAL_STATUSES, found.reason
        if (away := away_of(world, run)) is not None and away.by == by:
            return away
        sleep(0.05)
    raise AssertionError("the run does not wait")


def records(world: World, *runs: UUID) -> list[int]:
    """How many records each run has."""
    return [world.run(run).record_number for run in runs]


def cooled_down(superuser: psycopg.Connection) -> None:
    """The cooldown of the model's circuit is over."""
    superuser.execute(
        "UPDATE orchestrator_circuitrow SET until = clock_timestamp()"
        " WHERE kind = 'model' AND until IS NOT NULL"
    )


def ended(world: World, runs: list[UUID], sweep: Sweeper) -> list[Run]:
    """Sweep until all have ended."""
    until = monotonic() + PATIENCE
    while any(Status(world.run(run).status) not in TERMINAL_STATUSES for run in runs):
        assert monotonic() < until, [(away_of(world, run), world.run(run).status) for run in runs]
        sweep.tick()
        sleep(0.05)
    return [world.run(run) for run in runs]


@pytest.mark.slow
@proves("R-TOOL-22", part="an outage is waited out, and every run goes on by itself")
@proves("R-BUDGET-13", part="one probe at a time while runs wait")
def test_all_runs_of_a_server_that_died_wait_without_a_worker_and_go_on_when_it_is_back(
    world: World, model: Obedient, superuser: psycopg.Connection
) -> None:
    runs = [world.submit("tool-loop", GOAL) for _ in range(6)]
    sweep = Sweeper(fresh_worker())
    model.die()
    for run in runs:
        away = until_it_waits(world, run, "circuit")
        assert away.until is not None
        assert (away.until - away.since).total_seconds() == MODEL_PATIENCE_SECONDS
    for run in runs:
        found = world.run(run)
        assert (found.status, found.lease_owner, found.terminal_code) == ("in_progress", None, "")
        with tenant_transaction(world.id):
            assert state_now(run).usage.get("model_turns", 0) == 0
    # Behind the open circuit nobody is driven, and nothing is written.
    assert set(runs) & ({*called_up_runs(100)} | {*due_runs(100)}) == set()
    before = records(world, *runs)
    for _ in range(3):
        sweep.tick()
    assert records(world, *runs) == before
    # The cooldown is over and the server is still away: one run tries it.
    cooled_down(superuser)
    sweep.tick()
    assert sum(now != was for now, was in zip(records(world, *runs), before, strict=True)) == 1
    model.come_back()
    cooled_down(superuser)
    for found in ended(world, runs, sweep):
        assert found.terminal_code == "SUCCESS", found.reason
        world.sound(found.id)
    with tenant_transaction(world.id):
        assert ModelTurn.objects.count() == 0


@pytest.mark.slow
@proves(
    "R-BUDGET-13", part="the next probe comes with the end of the cooldown, whatever the prober's own wait is"
)
@pytest.mark.parametrize("bounded", [True, False], ids=["as many calls as it takes", "without a bound"])
def test_the_next_probe_does_not_wait_for_the_timer_of_the_run_whose_probe_failed(
    world: World,
    model: Obedient,
    superuser: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    bounded: bool,
) -> None:
    usual = catalog.available_profiles
    if not bounded:
        monkeypatch.setattr(
            catalog,
            "available_profiles",
            lambda *given: tuple(one.evolve(at_once=None) for one in usual(*given)),
        )
    runs = [world.submit("tool-loop", GOAL) for _ in range(1 if bounded else 2)]
    sweep = Sweeper(fresh_worker())
    model.die()
    for run in runs:
        until_it_waits(world, run, "circuit")
    for _ in range(3):
        before = records(world, *runs)
        cooled_down(superuser)
        sweep.tick()
        tried = [now != was for now, was in zip(records(world, *runs), before, strict=True)]
        assert sum(tried) == 1, "nobody tries the model, though its cooldown is over"
    assert {away_of(world, run).by for run in runs} <= {"timer", "circuit"}  # type: ignore[union-attr]
    model.come_back()
    cooled_down(superuser)
    for found in ended(world, runs, sweep):
        assert found.terminal_code == "SUCCESS", found.reason
        world.sound(found.id)
    with tenant_transaction(world.id):
        assert ModelTurn.objects.count() == 0


@pytest.mark.slow
@proves("R-TOOL-22", part="people's words act at once on a run that waits for its model")
def test_a_run_that_waits_for_its_model_is_cancelled_paused_and_stopped_at_once(
    world: World, model: Obedient
) -> None:
    model.die()
    runs = [world.submit("tool-loop", GOAL) for _ in range(4)]
    for run in runs:
        until_it_waits(world, run, "circuit")
    cancelled, paused, stopped, left = runs
    who = world.people.admin.principal.id
    cancel(world.id, cancelled, by=who, reason="no")
    pause(world.id, paused, by=who, reason="lunch")
    sweep = Sweeper(fresh_worker())
    sweep.tick()
    assert (world.run(cancelled).terminal_code, world.run(paused).status) == ("USER_CANCEL", "paused")
    assert away_of(world, left) is not None
    emergency_stop.stop_everything("tenant", tenant_id=world.id, by=who, reason="Enough.")
    sweep.tick()
    for run in (stopped, left):
        assert (world.run(run).terminal_code, world.run(run).status) == ("USER_CANCEL", "cancelled")
        world.sound(run)


class Slow(Obedient):
    """A server that takes a while, and knows how many it serves at once."""

    def __init__(self) -> None:
        super().__init__(LOOK)
        self.go, self.most, self.now = Event(), 0, 0

    def answer(self, seen: Seen) -> Reply:
        """Once a test lets it."""
        self.now += 1
        self.most = max(self.most, self.now)
        self.wait_for(self.go)
        self.now -= 1
        self.play(said("Done."))
        return super(Obedient, self).answer(seen)


@pytest.fixture
def slow(settings: Settings, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """A server of one's own that nobody gave a bound: it takes one call at a time, and has all the time."""
    usual = catalog.available_profiles
    monkeypatch.setattr(
        catalog,
        "available_profiles",
        lambda *given: tuple(one.evolve(timeout_ms=600_000) for one in usual(*given)),
    )
    settings.INTERLOCK_MODEL_AT_ONCE = None
    # Nobody renews the leases here, and a call counts no longer than its run's.
    settings.INTERLOCK_LEASE_SECONDS = 600
    server = Slow()
    with foreign(settings, server):
        yield server
        server.go.set()


def under_way(world: World, run: UUID, slow: Slow) -> Thread:
    """The run asks the model on a worker of its own, and is not answered yet."""
    thread = Thread(target=world.drive, args=(run, fresh_worker()))
    thread.start()
    until = monotonic() + PATIENCE
    while not slow.now:
        assert monotonic() < until
        sleep(0.02)
    return thread


def turns(world: World) -> dict[UUID, str]:
    """Where the tenant's runs stand in front of models."""
    with tenant_transaction(world.id):
        return dict(ModelTurn.objects.values_list("id", "stage"))


@proves("R-TOOL-22", part="a bound of calls at once, over all processes")
@proves("R-BUDGET-11", part="a fair line in front of a model, across tenants")
def test_what_is_above_a_models_bound_waits_in_line_and_a_quiet_tenant_comes_next(
    world: World, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[UUID] = []
    monkeypatch.setattr("orchestrator.llm.actions.model_queue.enqueue_run", woken.append)
    noisy = [world.submit("tool-loop", GOAL) for _ in range(4)]
    tenant_there = make_tenant()
    there = make_world(House(tenant=tenant_there, people=make_people(tenant_there)))
    quiet = there.submit("tool-loop", GOAL)
    thread = under_way(world, noisy[0], slow)
    for run in noisy[1:]:
        assert until_it_waits(world, run, "line").until is None
    assert until_it_waits(there, quiet, "line").rests
    found = world.run(noisy[1])
    assert (found.status, found.lease_owner) == ("in_progress", None)
    assert (woken, slow.most) == ([], 1)
    assert turns(world) == {noisy[0]: "calling"} | dict.fromkeys(noisy[1:], "queued")
    slow.go.set()
    thread.join(PATIENCE)
    # The other tenant was never served in this line: it comes before those who came before it.
    assert woken == [quiet]
    sweep = Sweeper(fresh_worker())
    for one in [*ended(there, [quiet], sweep), *ended(world, noisy, sweep)]:
        assert one.terminal_code == "SUCCESS", one.reason
    assert slow.most == 1
    assert len(slow.documents) == 5
    for run in noisy:
        world.sound(run)


@proves("R-TOOL-22", part="a dead worker's calls leave the line")
def test_the_call_of_a_worker_that_died_makes_room_with_its_lease(
    world: World, slow: Slow, superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.llm.actions.model_queue.enqueue_run", lambda _: False)
    dead, waiting = (world.submit("tool-loop", GOAL) for _ in range(2))
    thread = under_way(world, dead, slow)
    until_it_waits(world, waiting, "line")
    assert waiting not in called_up_runs(100)
    Clock(superuser).lease_dies(dead)
    assert waiting in called_up_runs(100)
    slow.go.set()
    thread.join(PATIENCE)
    for run in ended(world, [waiting, dead], Sweeper(fresh_worker())):
        assert run.terminal_code == "SUCCESS", run.reason
        world.sound(run.id)

"""Whose turn it is: a flood of one tenant moves nobody else back (R-BUDGET-11)."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest
from django.db import connections

from orchestrator.tenants.queries.cross_tenant import due_runs, next_run
from orchestrator.worker.fair_scheduler import FairScheduler, share_of
from tenancy.db.ids import fresh_id
from tests.conftest import House
from tests.factories.tenancy import make_people, make_tenant
from tests.factories.world import World, make_world
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


@pytest.fixture
def noisy(house: House) -> World:
    """The tenant that floods."""
    return make_world(house)


@pytest.fixture
def quiet(house: House) -> World:
    """A tenant with little to do."""
    tenant = make_tenant()
    return make_world(House(tenant=tenant, people=make_people(tenant)))


def others(superuser: psycopg.Connection, *worlds: World) -> list[UUID]:
    """Ready runs that earlier tests left in other tenants."""
    query = "SELECT id FROM orchestrator_run WHERE wake_at IS NULL AND NOT tenant_id = ANY(%s)"
    return [row[0] for row in superuser.execute(query, ([world.id for world in worlds],))]


def turns(worlds: dict[str, World], superuser: psycopg.Connection, share: int = 99) -> str:
    """The order in which runs have their turn, each driven to its end, by the tenants' letters."""
    left = others(superuser, *worlds.values())
    tenants = {world.id: letter for letter, world in worlds.items()}
    order = ""
    while (found := next_run(left, share)) is not None:
        letter = tenants[found[1]]
        order += letter
        worlds[letter].drive(found[0])
    return order


@proves("R-BUDGET-11", part="turns go round the tenants")
def test_a_flood_and_a_few_have_their_turns_one_by_one(
    noisy: World, quiet: World, superuser: psycopg.Connection
) -> None:
    for _ in range(6):
        noisy.submit("tool-loop", SUM)
    for _ in range(2):
        quiet.submit("tool-loop", SUM)
    order = turns({"n": noisy, "q": quiet}, superuser)
    assert Counter(order) == {"n": 6, "q": 2}
    assert order == "nqnqnnnn"


@proves("R-BUDGET-11", part="who has less at work comes first")
def test_who_has_less_in_hand_comes_first_and_nobody_beyond_its_share(
    noisy: World, quiet: World, superuser: psycopg.Connection
) -> None:
    flood = [noisy.submit("tool-loop", SUM) for _ in range(4)]
    few = [quiet.submit("tool-loop", SUM) for _ in range(2)]
    left = others(superuser, noisy, quiet)
    taken: list[UUID] = []
    while (found := next_run([*left, *taken], 3)) is not None:
        taken.append(found[0])
    assert taken == [flood[0], few[0], flood[1], few[1], flood[2]]


def test_a_run_in_somebodys_hands_has_no_turn(noisy: World, superuser: psycopg.Connection) -> None:
    run = noisy.submit("tool-loop", SUM)
    superuser.execute(
        "UPDATE orchestrator_run SET lease_owner = 'x', lease_until = clock_timestamp() + interval '1 hour'"
        " WHERE id = %s",
        (run,),
    )
    assert next_run(others(superuser, noisy), 9) is None


@proves("R-BUDGET-11", part="the sweep goes round too")
def test_the_sweep_finds_the_quiet_tenants_run_behind_a_flood(
    noisy: World, quiet: World, superuser: psycopg.Connection
) -> None:
    # A look finds a hundred; the tenants of earlier tests may be as many.
    Clock(superuser).park_the_rest()
    for _ in range(5):
        noisy.submit("tool-loop", SUM)
    alone = quiet.submit("tool-loop", SUM)
    second_of_the_flood = noisy.submit("tool-loop", SUM)
    found = due_runs(100)
    assert found.index(alone) < found.index(second_of_the_flood)


@proves("R-BUDGET-11", part="threads")
def test_threads_drive_everything_once_and_one_is_always_left(
    noisy: World, quiet: World, superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(10):
        noisy.submit("tool-loop", SUM)
    few = [quiet.submit("tool-loop", SUM) for _ in range(2)]
    left = others(superuser, noisy, quiet)
    monkeypatch.setattr(
        "orchestrator.worker.fair_scheduler.next_run", lambda taken, share: next_run([*taken, *left], share)
    )
    giving = FairScheduler(noisy.worker, threads=4)

    def thread(_: int) -> int:
        try:
            return giving.take()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        driven = list(pool.map(thread, range(4)))
    assert sum(driven) == 12
    assert {quiet.run(run).status for run in few} == {"completed"}


@proves("R-BUDGET-11", part="half of the threads while another tenant is at work")
def test_a_tenant_begins_no_run_beyond_half_of_the_threads_while_another_is_at_work(
    noisy: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, shares, offered = noisy.submit("tool-loop", SUM), list[int](), list[UUID]()
    ready = iter([(run, noisy.id), (run, noisy.id), None])

    def next_one(taken: list[UUID], share: int) -> tuple[UUID, UUID] | None:
        shares.append(share)
        return next(ready)

    def offer(run: UUID, *, tenant: UUID) -> None:
        offered.append(run)

    monkeypatch.setattr("orchestrator.worker.fair_scheduler.next_run", next_one)
    monkeypatch.setattr("orchestrator.worker.fair_scheduler.enqueue_ready", offer)
    giving = FairScheduler(noisy.worker, threads=8)
    with noisy.worker.way.run_of(noisy.id, fresh_id()), noisy.worker.way.run_of(fresh_id(), fresh_id()):
        assert giving._next(Counter()) == (run, noisy.id)
        assert offered == []
    assert giving.take() == 1
    assert shares == [4, 7, 7]
    assert offered == [run] * 3


@proves("R-BUDGET-11", part="the last free thread is for who has nothing in hand")
def test_two_floods_leave_a_thread_for_a_third_tenant(
    noisy: World, quiet: World, superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    flood = [noisy.submit("tool-loop", SUM) for _ in range(3)]
    alone = quiet.submit("tool-loop", SUM)
    left, way = others(superuser, noisy, quiet), noisy.worker.way
    monkeypatch.setattr(
        "orchestrator.worker.fair_scheduler.next_run", lambda taken, share: next_run([*taken, *left], share)
    )
    giving = FairScheduler(noisy.worker, threads=4)
    with way.run_of(noisy.id, flood[0]), way.run_of(fresh_id(), fresh_id()):
        with way.run_of(fresh_id(), fresh_id()):
            assert giving._next(Counter()) == (alone, quiet.id)
            giving._taken.clear()
            with way.run_of(quiet.id, alone):
                assert giving._next(Counter()) is None
        assert giving._next(Counter([alone] * 3)) == (flood[1], noisy.id)


def test_one_thread_in_eight_is_left_and_a_single_one_is_given() -> None:
    assert [share_of(threads) for threads in (1, 2, 4, 8, 32)] == [1, 1, 3, 7, 28]


def test_a_worker_that_stops_gives_no_turn(noisy: World) -> None:
    run = noisy.submit("tool-loop", SUM)
    noisy.worker.stopping = True
    assert FairScheduler(noisy.worker, threads=4).take() == 0
    assert noisy.run(run).status == "queued"

"""Who goes first in a process: the only run of a tenant begins before the next steps of a flood
(R-BUDGET-11)."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Barrier, Event
from uuid import UUID

import pytest
from django.db import connections
from pytest_django import Settings

from orchestrator.runtime.held import Heartbeat
from orchestrator.runtime.learner import Learner
from orchestrator.runtime.loop import FaultPoint
from orchestrator.runtime.process import Process
from orchestrator.runtime.sweep import Sweep
from orchestrator.runtime.turns import Turns
from orchestrator.runtime.way import COMMITTING, FLOOD, SWITCH_SECONDS, RightOfWay
from tenancy.ids import fresh_id
from tests.conftest import House
from tests.factories.tenancy import make_people, make_tenant
from tests.factories.world import World, fresh_worker, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
PATIENCE_SECONDS = 60.0


def in_turn(way: RightOfWay, tenant: UUID) -> bool:
    """Whether a commit of the tenant's would be made in its turn."""
    with way.committing(tenant) as turn:
        return turn


def test_the_only_run_of_a_tenant_has_the_way_until_it_has_begun() -> None:
    way, flood, few = RightOfWay(longest=0), fresh_id(), fresh_id()
    with ExitStack() as runs:
        for _ in range(3):
            runs.enter_context(way.run_of(flood, fresh_id())).begun()
        assert in_turn(way, flood)
        with way.run_of(few, fresh_id()) as alone:
            assert not in_turn(way, flood)
            assert in_turn(way, few)
            alone.begun()
            assert in_turn(way, flood)


def test_a_run_that_never_began_leaves_the_way_free() -> None:
    way, flood = RightOfWay(longest=0), fresh_id()
    with ExitStack() as runs:
        for _ in range(3):
            runs.enter_context(way.run_of(flood, fresh_id()))
        with way.run_of(fresh_id(), fresh_id()):
            assert not in_turn(way, flood)
        assert in_turn(way, flood)


@pytest.mark.parametrize(("mine", "theirs"), [(1, 1), (2, 2), (1, 2), (3, 2), (2, 1)])
def test_nobody_waits_for_a_tenant_with_more_than_half_as_many_in_hand(mine: int, theirs: int) -> None:
    way, here, there = RightOfWay(longest=0), fresh_id(), fresh_id()
    for tenant, runs in ((here, mine), (there, theirs)):
        for _ in range(runs):
            way.run_of(tenant, fresh_id()).__enter__()
    assert in_turn(way, here)


@proves("R-BUDGET-11", part="a flood commits no more at once than keep the interpreter busy")
@pytest.mark.parametrize(("in_hand", "turn"), [(FLOOD - 1, True), (FLOOD, False)])
def test_a_flood_waits_for_its_turn_and_few_do_not(in_hand: int, turn: bool) -> None:
    way, flood, busy = RightOfWay(longest=0), fresh_id(), fresh_id()
    with ExitStack() as held:
        for tenant, many in ((flood, in_hand), (busy, COMMITTING)):
            for _ in range(many):
                held.enter_context(way.run_of(tenant, fresh_id())).begun()
        with ExitStack() as commits:
            for _ in range(COMMITTING):
                commits.enter_context(way.committing(busy))
            assert in_turn(way, flood) is turn
        assert in_turn(way, flood)


def test_a_flood_alone_commits_as_it_likes() -> None:
    way, flood = RightOfWay(longest=0), fresh_id()
    with ExitStack() as held:
        for _ in range(FLOOD + COMMITTING):
            held.enter_context(way.run_of(flood, fresh_id())).begun()
        for _ in range(COMMITTING):
            held.enter_context(way.committing(flood))
        assert in_turn(way, flood)


def test_a_flood_leaves_room_for_whoever_was_here_lately() -> None:
    way, flood = RightOfWay(longest=0), fresh_id()
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(flood, fresh_id())).begun()
        with way.run_of(fresh_id(), fresh_id()):
            pass
        for _ in range(COMMITTING):
            held.enter_context(way.committing(flood))
        assert not in_turn(way, flood)


@proves("R-BUDGET-11", part="a flood lets a message be looked at first")
def test_a_flood_waits_while_a_message_that_came_in_is_looked_at() -> None:
    way, flood = RightOfWay(longest=0), fresh_id()
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(flood, fresh_id())).begun()
        with way.arriving():
            assert not in_turn(way, flood)
            with way.run_of(flood, fresh_id()):
                assert in_turn(way, flood)


@proves("R-BUDGET-11", part="a flood makes room for whoever comes next")
@pytest.mark.parametrize(
    ("in_hand", "leaving"),
    [
        pytest.param((8,), [0], id="nobody else is here"),
        pytest.param((6, 1), [0, 0], id="a thread is free"),
        pytest.param((7, 1), [1, 0], id="a flood and one"),
        pytest.param((4, 4), [1, 0], id="two floods"),
        pytest.param((2, 4, 1, 1), [1, 0, 0, 0], id="not the largest alone"),
        pytest.param((1, 1, 1, 1, 1, 1, 1, 1), [0] * 8, id="everybody has one"),
    ],
)
def test_one_run_of_a_flood_leaves_where_every_thread_is_in_use(
    in_hand: tuple[int, ...], leaving: list[int]
) -> None:
    way, tenants = RightOfWay(longest=0), [fresh_id() for _ in in_hand]
    way.among(8)
    with ExitStack() as runs:
        passages = [
            [runs.enter_context(way.run_of(tenant, fresh_id())) for _ in range(many)]
            for tenant, many in zip(tenants, in_hand, strict=True)
        ]
        for _ in range(2):
            assert [sum(passage.leaves() for passage in each) for each in passages] == leaving
    assert way.runs() == frozenset()
    with way.run_of(tenants[0], fresh_id()), way.run_of(tenants[0], fresh_id(), aside=True):
        assert not way.must_leave(tenants[0])
        assert len(way.runs()) == 1


def test_messages_that_find_nothing_do_not_stop_a_flood() -> None:
    way, flood = RightOfWay(longest=0.2), fresh_id()
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(flood, fresh_id())).begun()
        with way.arriving():
            pass
        with way.arriving():
            assert in_turn(way, flood)


@pytest.fixture
def noisy(house: House) -> World:
    """The tenant with several runs."""
    return make_world(house)


@pytest.fixture
def quiet() -> World:
    """The tenant with one."""
    tenant = make_tenant()
    return make_world(House(tenant=tenant, people=make_people(tenant)))


@proves("R-BUDGET-11", part="a run that begins goes before the steps of a flood")
def test_the_first_commit_of_a_quiet_tenant_comes_before_the_second_ones_of_a_flood(
    noisy: World, quiet: World
) -> None:
    way, said = RightOfWay(longest=PATIENCE_SECONDS), list[str]()
    claimed, both, begun = Event(), Barrier(3), Event()

    def flooding(point: str) -> None:
        if point == "claimed":
            both.wait(PATIENCE_SECONDS)
        if point == "committed":
            said.append("flood")
            if said.count("flood") == 3:
                begun.set()

    def alone(point: str) -> None:
        if point == "claimed":
            claimed.set()
            assert begun.wait(PATIENCE_SECONDS)
        if point == "committed":
            said.append("alone")

    def drive(world: World, run: UUID, fault: FaultPoint) -> None:
        try:
            replace(fresh_worker(), way=way, fault=fault).advance(run)
        finally:
            connections.close_all()

    one = quiet.submit("tool-loop", SUM)
    flood = [noisy.submit("tool-loop", SUM) for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        driven = [pool.submit(drive, quiet, one, alone)]
        assert claimed.wait(PATIENCE_SECONDS)
        driven += [pool.submit(drive, noisy, run, flooding) for run in flood]
        for future in driven:
            future.result()
    assert said[:4] == ["flood", "flood", "flood", "alone"]
    assert {quiet.run(one).status, *(noisy.run(run).status for run in flood)} == {"completed"}


class Watched(RightOfWay):
    """Remembers who had its turn."""

    def __init__(self) -> None:
        super().__init__(longest=0)
        self.turns: list[bool] = []

    @contextmanager
    def committing(self, tenant: UUID) -> Iterator[bool]:
        with super().committing(tenant) as turn:
            self.turns.append(turn)
            yield turn


@proves("R-BUDGET-11", part="each commit of a flood after the first waits")
@pytest.mark.parametrize("aside", [False, True])
def test_a_run_of_a_flood_waits_before_each_commit_but_its_first_unless_driven_aside(
    noisy: World, aside: bool
) -> None:
    way, run = Watched(), noisy.submit("tool-loop", SUM)
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(noisy.id, fresh_id())).begun()
        held.enter_context(way.run_of(fresh_id(), fresh_id())).begun()
        for _ in range(COMMITTING):
            held.enter_context(RightOfWay.committing(way, noisy.id))
        replace(fresh_worker(), way=way).advance(run, aside=aside)
    record = noisy.run(run)
    assert record.status == "completed"
    assert way.turns == ([] if aside else [False] * (record.version - 1))


@proves("R-BUDGET-11", part="a worker looks at a message before a flood's next step")
def test_a_thread_that_took_a_message_arrives_until_it_has_a_run(
    noisy: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, flood, seen = fresh_worker(), fresh_id(), list[bool]()
    way = worker.way = RightOfWay(longest=0)
    turns = Turns(worker, threads=8)
    monkeypatch.setattr(turns, "_next", lambda driven: seen.append(in_turn(way, flood)))
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(flood, fresh_id())).begun()
        turns.take()
        assert in_turn(way, flood)
    assert seen == [False]


@proves("R-BUDGET-11", part="a run of a flood is given back in the midst")
def test_a_run_of_a_tenant_with_more_than_its_part_is_held_before_its_next_node(
    noisy: World, quiet: World
) -> None:
    worker = fresh_worker()
    way, run = worker.way, noisy.submit("tool-loop", SUM)
    way.among(3)
    with way.run_of(noisy.id, fresh_id()), way.run_of(quiet.id, fresh_id()):
        worker.advance(run)
        assert noisy.run(run).status == "in_progress"
        assert "model_called" not in noisy.kinds(run)
    worker.advance(run)
    assert noisy.run(run).terminal_code == "SUCCESS"
    noisy.sound(run)


@proves("R-BUDGET-11", part="only a queued run's beginning has the way")
def test_a_run_that_goes_on_is_no_beginning(noisy: World, settings: Settings) -> None:
    way, flood, free = RightOfWay(longest=0), fresh_id(), list[bool]()
    worker = fresh_worker()

    def look(point: str) -> None:
        if point == "claimed":
            free.append(in_turn(way, flood))

    run = noisy.submit("tool-loop", SUM)
    settings.INTERLOCK_SLICE_SECONDS = -1
    with ExitStack() as runs:
        for _ in range(3):
            runs.enter_context(way.run_of(flood, fresh_id())).begun()
        for _ in range(2):
            replace(worker, way=way, fault=look).advance(run)
    assert noisy.run(run).status == "in_progress"
    assert free == [False, True]


@pytest.fixture
def as_ever() -> Iterator[None]:
    """The interpreter's own interval after the test."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("as_ever")
@proves("R-BUDGET-11", part="threads take turns at the interpreter often")
def test_a_worker_process_lets_its_threads_take_turns_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for thread in (Heartbeat, Sweep, Learner):
        monkeypatch.setattr(thread, "start", lambda self: None)
    worker = fresh_worker()
    Process(worker=worker, heartbeat=Heartbeat(), sweep=Sweep(worker), turns=Turns(worker, threads=1)).start()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)

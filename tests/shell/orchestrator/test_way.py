"""Who goes first in a process: the only run of a tenant begins before the next steps of a flood
(R-BUDGET-11)."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Barrier, Event
from time import monotonic
from uuid import UUID

import pytest
from django.db import connections
from pytest_django import Settings

from orchestrator.worker.commit_throttle import BUSY, FLOOD, ROOMY, CommitThrottle
from orchestrator.worker.fair_scheduler import FairScheduler
from orchestrator.worker.run_loop import FaultPoint
from tenancy.db.ids import fresh_id
from tests.conftest import House
from tests.factories.tenancy import make_people, make_tenant
from tests.factories.world import World, fresh_worker, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
PATIENCE_SECONDS = 60.0


def in_turn(way: CommitThrottle, tenant: UUID) -> bool:
    """Whether a commit of the tenant's would be made in its turn."""
    with way.hold_commit_slot(tenant) as turn:
        return turn


def test_the_only_run_of_a_tenant_has_the_way_until_it_has_begun() -> None:
    way, flood, few = CommitThrottle(longest=0), fresh_id(), fresh_id()
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
    way, flood = CommitThrottle(longest=0), fresh_id()
    with ExitStack() as runs:
        for _ in range(3):
            runs.enter_context(way.run_of(flood, fresh_id()))
        with way.run_of(fresh_id(), fresh_id()):
            assert not in_turn(way, flood)
        assert in_turn(way, flood)


@pytest.mark.parametrize(("mine", "theirs"), [(1, 1), (2, 2), (1, 2), (3, 2), (2, 1)])
def test_nobody_waits_for_a_tenant_with_more_than_half_as_many_in_hand(mine: int, theirs: int) -> None:
    way, here, there = CommitThrottle(longest=0), fresh_id(), fresh_id()
    for tenant, runs in ((here, mine), (there, theirs)):
        for _ in range(runs):
            way.run_of(tenant, fresh_id()).__enter__()
    assert in_turn(way, here)


@contextmanager
def having(way: CommitThrottle, in_hand: Mapping[UUID, int], commits: int = 0) -> Iterator[None]:
    """These numbers of runs in hand, all begun, and so many of the first tenant's that commit."""
    with ExitStack() as held:
        for tenant, many in in_hand.items():
            for _ in range(many):
                held.enter_context(way.run_of(tenant, fresh_id())).begun()
        for _ in range(commits):
            held.enter_context(way.hold_commit_slot(next(iter(in_hand))))
        yield


@proves("R-BUDGET-11", part="a flood commits once at a time beside somebody with few runs")
@pytest.mark.parametrize(("in_hand", "turn"), [(FLOOD - 1, True), (FLOOD, False)])
def test_a_flood_waits_for_its_turn_and_few_do_not(in_hand: int, turn: bool) -> None:
    way, flood, few = CommitThrottle(longest=0), fresh_id(), fresh_id()
    with having(way, {few: 1, flood: in_hand}):
        with having(way, {few: 0}, ROOMY):
            assert in_turn(way, flood) is turn
        assert in_turn(way, flood)


@proves("R-BUDGET-11", part="floods commit no more at once than keep the interpreter busy")
def test_floods_among_themselves_keep_the_interpreter_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    way, flood, other = CommitThrottle(longest=0), fresh_id(), fresh_id()
    # Whoever has many in hand once had few.
    monkeypatch.setattr("orchestrator.worker.commit_throttle.LATELY_SECONDS", -1.0)
    with having(way, {other: FLOOD, flood: FLOOD}):
        with having(way, {other: 0}, BUSY - 1):
            assert in_turn(way, flood)
        with having(way, {other: 0}, BUSY):
            assert not in_turn(way, flood)


def test_a_flood_alone_commits_as_it_likes() -> None:
    way, flood = CommitThrottle(longest=0), fresh_id()
    with having(way, {flood: FLOOD + BUSY}, BUSY):
        assert in_turn(way, flood)


def test_a_flood_leaves_room_for_whoever_was_here_lately() -> None:
    way, flood = CommitThrottle(longest=0), fresh_id()
    with having(way, {flood: FLOOD}):
        with way.run_of(fresh_id(), fresh_id()):
            pass
        with having(way, {flood: 0}, ROOMY):
            assert not in_turn(way, flood)


@proves("R-BUDGET-11", part="a flood makes way in the midst of a commit")
def test_a_flood_gives_way_in_the_midst_of_a_commit_to_whoever_begins() -> None:
    way, flood, few, went = CommitThrottle(longest=PATIENCE_SECONDS), fresh_id(), fresh_id(), Event()
    with having(way, {flood: FLOOD - 1}), way.run_of(flood, fresh_id()) as one:
        one.begun()
        way.give_way(flood, PATIENCE_SECONDS)

        def give_way() -> None:
            way.give_way(flood, PATIENCE_SECONDS)
            went.set()

        with ThreadPoolExecutor(1) as pool, way.run_of(few, fresh_id()) as begins:
            waiting = pool.submit(give_way)
            way.give_way(few, PATIENCE_SECONDS)
            assert not went.wait(0.2)
            begins.begun()
            waiting.result()
    assert went.is_set()


@proves("R-BUDGET-11", part="two floods do not wait for one another")
def test_a_flood_that_gives_way_leaves_its_turn_to_a_lesser_one_that_begins() -> None:
    way, greater, less = CommitThrottle(longest=PATIENCE_SECONDS), fresh_id(), fresh_id()
    entered, begins = Barrier(BUSY + 1), Event()

    def commit() -> None:
        with way.hold_commit_slot(greater):
            entered.wait(PATIENCE_SECONDS)
            assert begins.wait(PATIENCE_SECONDS)
            way.give_way(greater, PATIENCE_SECONDS)

    with having(way, {greater: 2 * FLOOD + 2, less: FLOOD}), ThreadPoolExecutor(BUSY) as pool:
        committed = [pool.submit(commit) for _ in range(BUSY)]
        entered.wait(PATIENCE_SECONDS)
        with way.run_of(less, fresh_id()):
            begins.set()
            started = monotonic()
            assert in_turn(way, less)
            assert monotonic() - started < PATIENCE_SECONDS / 2
        for one in committed:
            one.result()


@proves("R-BUDGET-11", part="a flood lets a message be looked at first")
def test_a_flood_waits_while_a_message_that_came_in_is_looked_at() -> None:
    way, flood = CommitThrottle(longest=0), fresh_id()
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(flood, fresh_id())).begun()
        with way.announce_arrival(fresh_id()):
            assert not in_turn(way, flood)
            with way.run_of(flood, fresh_id()):
                assert in_turn(way, flood)
        for whose in (flood, None):
            with way.announce_arrival(whose):
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
    way, tenants = CommitThrottle(longest=0), [fresh_id() for _ in in_hand]
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


@pytest.mark.parametrize(("in_hand", "waits"), [(FLOOD, False), (FLOOD - 1, True)])
def test_messages_of_a_flood_that_find_nothing_do_not_stop_a_greater_one(in_hand: int, waits: bool) -> None:
    way, flood, less = CommitThrottle(longest=0.2), fresh_id(), fresh_id()
    with having(way, {flood: 2 * FLOOD, less: in_hand}):
        with way.announce_arrival(less):
            assert not in_turn(way, flood)
        with way.announce_arrival(less):
            assert in_turn(way, flood) is not waits


@pytest.fixture
def noisy(house: House) -> World:
    """The tenant with several runs."""
    return make_world(house)


@pytest.fixture
def quiet() -> World:
    """The tenant with one."""
    tenant = make_tenant()
    return make_world(House(tenant=tenant, people=make_people(tenant)))


class Asked(CommitThrottle):
    """Says when somebody of a tenant asks for a turn."""

    def __init__(self, tenant: UUID) -> None:
        super().__init__(longest=PATIENCE_SECONDS)
        self.tenant, self.asked = tenant, Event()

    @contextmanager
    def hold_commit_slot(self, tenant: UUID) -> Iterator[bool]:
        if tenant == self.tenant:
            self.asked.set()
        with super().hold_commit_slot(tenant) as turn:
            yield turn


@proves("R-BUDGET-11", part="a run that begins goes before the claims and steps of a flood")
def test_the_first_commit_of_a_quiet_tenant_comes_before_any_of_a_flood(noisy: World, quiet: World) -> None:
    way, said, claimed = Asked(noisy.id), list[str](), Event()

    def flooding(point: str) -> None:
        if point in ("claimed", "committed"):
            said.append("flood")

    def alone(point: str) -> None:
        if point == "claimed":
            claimed.set()
            assert way.asked.wait(PATIENCE_SECONDS)
        if point == "committed":
            said.append("alone")

    def drive(world: World, run: UUID, fault: FaultPoint) -> None:
        try:
            replace(fresh_worker(), way=way, fault=fault).advance(run)
        finally:
            connections.close_all()

    one, many = quiet.submit("tool-loop", SUM), noisy.submit("tool-loop", SUM)
    with having(way, {noisy.id: FLOOD}), ThreadPoolExecutor(2) as pool:
        driven = [pool.submit(drive, quiet, one, alone)]
        assert claimed.wait(PATIENCE_SECONDS)
        driven.append(pool.submit(drive, noisy, many, flooding))
        for future in driven:
            future.result()
    assert said[0] == "alone"
    assert "flood" in said
    assert {quiet.run(one).status, noisy.run(many).status} == {"completed"}


class Watched(CommitThrottle):
    """Remembers who had its turn."""

    def __init__(self) -> None:
        super().__init__(longest=0)
        self.turns: list[bool] = []

    @contextmanager
    def hold_commit_slot(self, tenant: UUID) -> Iterator[bool]:
        with super().hold_commit_slot(tenant) as turn:
            self.turns.append(turn)
            yield turn


@proves("R-BUDGET-11", part="each claim and each commit of a flood waits")
@pytest.mark.parametrize("aside", [False, True])
def test_a_run_of_a_flood_waits_before_its_claim_and_each_commit_unless_driven_aside(
    noisy: World, aside: bool
) -> None:
    way, run = Watched(), noisy.submit("tool-loop", SUM)
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(noisy.id, fresh_id())).begun()
        held.enter_context(way.run_of(fresh_id(), fresh_id())).begun()
        for _ in range(BUSY):
            held.enter_context(CommitThrottle.hold_commit_slot(way, noisy.id))
        replace(fresh_worker(), way=way).advance(run, aside=aside)
    record = noisy.run(run)
    assert record.status == "completed"
    assert way.turns == ([] if aside else [False] * (1 + record.version))


@proves("R-BUDGET-11", part="a worker looks at a message before a flood's next step")
def test_a_thread_that_took_a_message_arrives_until_it_has_a_run(
    noisy: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, flood, seen = fresh_worker(), fresh_id(), list[bool]()
    way = worker.way = CommitThrottle(longest=0)
    turns = FairScheduler(worker, threads=8)
    monkeypatch.setattr(turns, "_next", lambda driven: seen.append(in_turn(way, flood)))
    with ExitStack() as held:
        for _ in range(FLOOD):
            held.enter_context(way.run_of(flood, fresh_id())).begun()
        turns.take(noisy.id)
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
    way, flood, free = CommitThrottle(longest=0), fresh_id(), list[bool]()
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

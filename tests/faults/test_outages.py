"""The broker forgets, the database goes away, the disk is full: what was accepted comes to its right end."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from signal import SIGQUIT
from threading import Thread, Timer
from time import monotonic, sleep
from uuid import UUID

import psycopg
import pytest
from celery import Celery
from django.db import Error, connection, connections
from psycopg import sql
from pytest_django import DjangoDbBlocker, Settings
from redis import Redis

import tests.servers
from approvals.core.errors import ApprovalError
from config.databases import build_database_settings
from config.devstack.embedded import EmbeddedValkey
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.outbound.gateways.counters import TALLY
from orchestrator.runs.gateways import job_queue
from orchestrator.runs.models.run import Run
from orchestrator.runs.models.task import Task
from orchestrator.worker.heartbeat import Heartbeat
from orchestrator.worker.sweeper import Sweeper
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.program import program, refusal
from tests.doubles.company import Company
from tests.factories.foreign import to_the_end
from tests.factories.tenancy import make_people, make_tenant
from tests.factories.world import World, company_at, fresh_worker, make_world
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves
from tests.servers import TestServers

pytestmark = pytest.mark.slow

TEN = ("A-1001", "A-1002", "A-1003", "A-1006", "A-1009", "A-1010", "A-1012", "A-1013", "A-1014", "A-1015")
BODY = {"workflow": "tool-loop", "goal": {"objective": "How much is (12 + 30) * 2?"}}
# Ten refunds at once, of which some wait for leases that die: on a busy machine that takes minutes.
PATIENCE_SECONDS = 240.0


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


@contextmanager
def crew(settings: Settings) -> Iterator[None]:
    """Three sweeps and a heartbeat at work, and nobody else: what moves moves without any message."""
    settings.INTERLOCK_LEASE_SECONDS, settings.INTERLOCK_SWEEP_SECONDS = 3, 0.2
    threads: list[Sweeper | Heartbeat] = [*(Sweeper(fresh_worker()) for _ in range(3)), Heartbeat()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join(20)


def say_yes(world: World, run: UUID) -> bool:
    """Agree to whatever the run asks, by two people; whether it has ended."""
    for request in world.open_requests(run):
        for who in (world.people.approver, world.people.second_approver):
            with suppress(ApprovalError):
                world.decide(request, who)
    return Status(world.run(run).status) in TERMINAL_STATUSES


def all_end(world: World, runs: list[UUID]) -> None:
    """People keep saying yes until every run has ended, whatever the database does meanwhile."""
    until, open_runs = monotonic() + PATIENCE_SECONDS, list(runs)
    while open_runs:
        assert monotonic() < until, [world.run(run).status for run in open_runs]
        try:
            open_runs = [run for run in open_runs if not say_yes(world, run)]
        except Error:
            connection.close()
        sleep(0.1)


def ten_refunds(world: World, company: Company, outage: Callable[[], None]) -> None:
    """Ten refunds; the outage strikes when the first ones are paid. Each is made once, each is told once."""
    runs = [world.submit("support-refund", "Refund", inputs={"order_id": order}) for order in TEN]
    struck: list[int] = []
    strike = Thread(target=_once_paid, args=(company, outage, struck))
    strike.start()
    all_end(world, runs)
    strike.join()
    ends = [(world.run(run).terminal_code, world.run(run).reason) for run in runs]
    refunded = [effect["body"]["order_id"] for effect in company.effects("payments")]
    told = [effect["body"]["to"] for effect in company.effects("mail")]
    assert len(refunded) == len(set(refunded)) == len(told) == len(set(told))
    for order, run, end in zip(TEN, runs, ends, strict=True):
        assert end[0] == ("SUCCESS" if order in refunded else "IMPOSSIBLE"), (order, end)
        world.sound(run)
    assert len(refunded) >= 7
    assert struck[0] < len(told), "the outage came too late"


def _once_paid(company: Company, outage: Callable[[], None], struck: list[int]) -> None:
    """Wait for the first payments, then strike."""
    until = monotonic() + PATIENCE_SECONDS
    while len(company.effects("payments")) < 2 and monotonic() < until:
        sleep(0.02)
    struck.append(len(company.effects("mail")))
    outage()


@pytest.mark.timeout(600)
@proves("R-SESS-1", part="FLUSHALL")
def test_ten_refunds_end_right_when_the_broker_forgets_everything(
    world: World,
    company: Company,
    superuser: psycopg.Connection,
    valkey: EmbeddedValkey,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        job_queue, "current_app", postman(valkey.url.replace("unix://", "redis+socket://", 1))
    )
    monkeypatch.setattr(job_queue, "_quiet_until", 0.0)
    Clock(superuser).park_the_rest()
    lost: list[int] = []

    def flush() -> None:
        with Redis.from_url(valkey.url) as client:
            lost.append(sum(int(client.llen(f"interlock:{kind}")) for kind in ("runs", "turns")))
            client.flushall()

    with crew(settings):
        ten_refunds(world, company, flush)
    assert lost[0] >= len(TEN)


@pytest.mark.soak
@pytest.mark.timeout(600)
@proves("R-SESS-1", part="the database is away")
@proves("R-SESS-3", part="connections lost anywhere")
def test_ten_refunds_end_right_when_every_connection_is_cut(
    world: World, company: Company, superuser: psycopg.Connection, servers: TestServers, settings: Settings
) -> None:
    Clock(superuser).park_the_rest()
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"

    def away() -> None:
        with servers.postgres.connect() as outside:
            name = sql.Identifier(servers.database)
            outside.execute(allow.format(name, sql.Literal(False)))
            try:
                for _ in range(5):
                    outside.execute(cut, [servers.database])
                    sleep(0.1)
            finally:
                outside.execute(allow.format(name, sql.Literal(True)))

    with crew(settings):
        ten_refunds(world, company, away)


@pytest.fixture
def own_servers(
    servers: TestServers, tmp_path: Path, django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestServers]:
    """A durable PostgreSQL of this test's own, in place of the one that all tests share."""
    monkeypatch.setattr(tests.servers, "FOLDER", tmp_path / "own")
    own = TestServers("outage", "main")
    own.postgres.durable = True
    before = connections.settings["default"]
    with ExitStack() as stack:
        stack.callback(own.release)
        own.acquire()
        own.prepare()
        stack.enter_context(django_db_blocker.unblock())
        stack.callback(_swap, before)
        entry = build_database_settings(own.environment()["DATABASE_URL"], pool_size=32)
        _swap(entry | {"TIME_ZONE": None, "AUTOCOMMIT": True, "TEST": {"MIRROR": None}})
        yield own


def _swap(entry: dict[str, object]) -> None:
    """From here on this process works on another database."""
    connections.close_all()
    connections["default"].close_pool()  # type: ignore[attr-defined]
    del connections["default"]
    connections.settings["default"] = entry


@pytest.mark.timeout(600)
@proves("R-SESS-1", part="PostgreSQL is killed and starts again")
def test_ten_refunds_end_right_when_postgresql_is_killed(
    own_servers: TestServers, company: Company, settings: Settings
) -> None:
    house_here = make_tenant()
    with company_at(company.url):
        world = make_world(House(tenant=house_here, people=make_people(house_here)))

        def restart() -> None:
            started = own_servers._started
            assert started is not None
            started.send_signal(SIGQUIT)  # an immediate shutdown, recovered from the write-ahead log
            started.wait(30)
            own_servers.postgres.start(with_parent=False)
            own_servers._started, own_servers.postgres.process = own_servers.postgres.process, None

        with crew(settings):
            ten_refunds(world, company, restart)


@pytest.fixture
def disk(superuser: psycopg.Connection, house: House) -> Iterator[Callable[..., None]]:
    """Fills the disk for one table, as far as this tenant is concerned, and frees it again."""
    filled: list[str] = []

    def fill(table: str, *, full: bool = True) -> None:
        superuser.execute(f"DROP TRIGGER IF EXISTS zz_full ON {table}")
        if full:
            filled.append(table)
            superuser.execute(
                f"CREATE TRIGGER zz_full BEFORE INSERT ON {table} FOR EACH ROW"
                f" WHEN (NEW.tenant_id = '{house.tenant.id}') EXECUTE FUNCTION disk_is_full()"
            )

    superuser.execute(
        "CREATE OR REPLACE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END$$"
    )
    yield fill
    for table in filled:
        fill(table, full=False)


@proves("D5", part="a full disk at the door")
@pytest.mark.parametrize(
    "table", ["orchestrator_task", "orchestrator_run", "traces_record", "traces_payload"]
)
def test_a_full_disk_refuses_new_work_whole(world: World, disk: Callable[..., None], table: str) -> None:
    submitter = program(world.id, Role.CLIENT)
    submitter.client.raise_request_exception = False
    disk(table)
    assert refusal(submitter.post("/tasks", BODY)) == (507, "store-full")
    with tenant_transaction(world.id):
        assert (Task.objects.count(), Run.objects.count()) == (0, 0)
    disk(table, full=False)
    accepted = submitter.post("/tasks", BODY)
    assert accepted.status_code == 202
    assert world.drive(UUID(accepted.json()["run"]["id"])).terminal_code == "SUCCESS"


@proves("D5", part="a full disk under a run")
@pytest.mark.parametrize(
    "table", ["traces_record", "traces_payload", "orchestrator_intent", "orchestrator_dispatch"]
)
def test_a_run_waits_for_room_and_goes_on(
    world: World, company: Company, superuser: psycopg.Connection, disk: Callable[..., None], table: str
) -> None:
    run = world.submit("support-refund", "Refund", inputs={"order_id": "A-1001"})
    disk(table)
    room = Timer(0.6, disk, (table,), {"full": False})
    room.start()
    with suppress(Error):
        world.approve_all(run)
    room.join()
    Clock(superuser).lease_dies(run)
    assert to_the_end(world, run).terminal_code == "SUCCESS"
    assert (len(company.effects("payments")), len(company.effects("mail"))) == (1, 1)
    world.sound(run)


def postman(broker: str) -> Celery:
    """A Celery with this house's settings and another broker."""
    app = Celery("outage", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    app.conf.update(broker_url=broker)
    return app


@proves("R-SESS-1", part="a dead broker never fails a POST")
def test_a_task_is_accepted_while_the_broker_is_dead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "current_app", postman("redis://127.0.0.1:9/0"))
    monkeypatch.setattr(job_queue, "_quiet_until", 0.0)
    # However long the three take, it is not yet time to try again.
    monkeypatch.setattr(job_queue, "read_monotonic_clock", lambda: 1.0)
    submitter, before = program(world.id, Role.CLIENT), Counter(TALLY.read())
    accepted = [submitter.post("/tasks", BODY) for _ in range(3)]
    assert [answer.status_code for answer in accepted] == [202] * 3
    counted = Counter(TALLY.read()) - before
    # One looked for the broker; after it nobody waits for it again until it is time to try.
    assert sum(number for (_, _, what), number in counted.items() if what == "failed") == 1
    assert sum(number for (_, _, what), number in counted.items() if what == "dropped") >= 2

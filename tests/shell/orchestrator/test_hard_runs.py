"""Runs that go wrong in themselves: they harm no other, park in the end, and are found out."""

from uuid import UUID

import orjson
import psycopg
import pytest

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.admission.errors import GoalInvalid
from orchestrator.outbound.gateways.database_authorization import (
    FRESH_SECONDS,
    CachedAuthorization,
    DatabasePermit,
)
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.replays import replay_stored_run
from orchestrator.worker.effects.run_loader import load_claimed_run
from orchestrator.worker.heartbeat import HELD, Heartbeat
from orchestrator.worker.leases import claim_lease, release_lease
from orchestrator.worker.sweeper import Sweeper
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.forging import forge
from tests.factories.world import World, fresh_worker
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


def damage(superuser: psycopg.Connection, run: UUID) -> None:
    """Make a run's snapshot unreadable."""
    superuser.execute("ALTER TABLE traces_snapshot DISABLE TRIGGER append_only")
    superuser.execute("UPDATE traces_snapshot SET state = 'not a state' WHERE run_id = %s", (run,))
    superuser.execute("ALTER TABLE traces_snapshot ENABLE TRIGGER append_only")


@proves("R-SESS-1", part="one bad run")
def test_a_run_that_cannot_be_read_keeps_no_other_waiting_and_is_parked(
    world: World, superuser: psycopg.Connection
) -> None:
    Clock(superuser).park_the_rest()
    broken, healthy = world.submit("tool-loop", SUM), world.submit("tool-loop", SUM)
    damage(superuser, broken)
    sweep = Sweeper(world.worker)
    for _ in range(20):
        sweep.tick()
        if world.run(broken).status == "paused" and world.run(healthy).terminal_code:
            break
    assert world.run(healthy).terminal_code == "SUCCESS"
    parked = world.run(broken)
    assert (parked.status, parked.lease_owner) == ("paused", None)
    assert parked.reason.startswith("unworkable: JSONDecodeError")


@proves("R-SESS-2", part="a run that was put down")
def test_the_heartbeat_does_not_keep_a_run_that_its_worker_put_down(
    world: World, superuser: psycopg.Connection
) -> None:
    broken, other = world.submit("tool-loop", SUM), world.submit("tool-loop", SUM)
    damage(superuser, broken)
    worker = fresh_worker()
    claimed = claim_lease(world.id, other, worker.name)
    assert claimed is not None
    with HELD.hold_run(load_claimed_run(world.id, other, worker.name, claimed)):
        worker.advance(broken)
        Heartbeat().beat()
        until = world.run(broken).lease_until
        assert until is not None
        assert until <= database_now()
    again = claim_lease(world.id, broken, "another")
    assert again is not None
    assert again.takeovers == 1


@proves("R-SESS-2", part="a row that somebody keeps holds no other lease up")
def test_a_renewal_passes_by_whose_row_a_commit_keeps_and_comes_back(
    world: World, superuser: psycopg.Connection
) -> None:
    worker, hands = fresh_worker(), list[ClaimedRun]()
    for _ in range(2):
        run = world.submit("tool-loop", SUM)
        claimed = claim_lease(world.id, run, worker.name)
        assert claimed is not None
        hands.append(load_claimed_run(world.id, run, worker.name, claimed))
    committing, free = hands
    before = [world.run(hand.run).lease_until for hand in hands]
    with HELD.hold_run(committing), HELD.hold_run(free):
        with superuser.transaction():
            superuser.execute("SELECT 1 FROM orchestrator_run WHERE id = %s FOR UPDATE", (committing.run,))
            Heartbeat().beat()
            after = [world.run(hand.run).lease_until for hand in hands]
            assert [new == old for new, old in zip(after, before, strict=True)] == [True, False]
        Heartbeat().beat()
    assert world.run(committing.run).lease_until != before[0]
    for hand in hands:
        release_lease(world.id, hand.run, worker.name, hand.fence)


def unsaid(body: bytes) -> bytes:
    """The record with other digests of what was said."""
    record = orjson.loads(body)
    return orjson.dumps(record | {"said": ["00" * 32 for _ in record["said"]]}, option=orjson.OPT_SORT_KEYS)


@proves("R-TRACE-6", part="what was said")
def test_replay_compares_what_was_said_and_not_only_the_moves(
    world: World, superuser: psycopg.Connection
) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    assert replay_stored_run(world.id, run).matches
    number = forge(superuser, run, "number > 2", unsaid)
    report = replay_stored_run(world.id, run)
    assert not report.matches
    assert (report.first_difference, report.detail) == (number, "what was said differs")


@proves("R-BUDGET-17", part="an answer that came with the commit is good for a moment")
def test_a_known_answer_is_used_once_and_only_while_it_is_fresh(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(
        "orchestrator.outbound.gateways.database_authorization.read_monotonic_clock", lambda: now[0]
    )

    def permit() -> DatabasePermit:
        return DatabasePermit(world.id, fresh_id(), "no-such-effect", 1, CachedAuthorization("ok", 100.0))

    held = permit()
    assert held.check() is None
    assert held.check() is not None
    late = permit()
    now[0] += FRESH_SECONDS + 0.01
    refused = late.check()
    assert refused is not None
    assert refused.reason == "fence"


def test_a_deadline_that_has_passed_is_refused_at_the_door(world: World) -> None:
    with pytest.raises(GoalInvalid) as refused:
        world.submit("tool-loop", SUM, deadline=database_now())
    assert refused.value.data["pointer"] == "/goal/deadline"
    with tenant_transaction(world.id):
        assert not Run.objects.exists()

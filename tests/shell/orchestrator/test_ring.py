"""The ring on the real database: one writer, one commit per effect, nothing lost on the way."""

import threading
from contextlib import suppress

import psycopg
import pytest
from django.db import OperationalError, transaction

from orchestrator.commit.commit import commit_run
from orchestrator.commit.read_phase import LeaseLost
from orchestrator.core.admission.errors import GoalInvalid, RunOver
from orchestrator.core.common.errors import IllegalMove
from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.run_events import TimerFired
from orchestrator.core.domain.status_transitions import compute_transition_path
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.actions.run_signals import cancel, pause, resume
from orchestrator.runs.models.run import Dispatch, Intent, ManifestRow, Run, RunSignal, SignalReceipt
from orchestrator.runs.queries.progress import progress_of
from orchestrator.runs.queries.replays import replay_stored_run
from orchestrator.worker.effects.run_loader import load_claimed_run
from orchestrator.worker.leases import claim_lease, release_lease
from orchestrator.worker.sweeper import Sweeper
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership
from tests.doubles.company import Company
from tests.factories.dying import Killed, dies_at
from tests.factories.forging import forge
from tests.factories.world import World, company_at, fresh_worker
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves
from traces.models import Payload, Record, Snapshot

SUM = "How much is (12 + 30) * 2?"


def let_the_lease_die(superuser: psycopg.Connection, run: object) -> None:
    query = "UPDATE orchestrator_run SET lease_until = clock_timestamp() - interval '1 second' WHERE id = %s"
    superuser.execute(query, (run,))


@proves("R-SESS-2")
def test_a_worker_that_lost_its_lease_can_write_nothing(world: World, superuser: psycopg.Connection) -> None:
    run = world.submit("tool-loop", SUM)
    first = claim_lease(world.id, run, "first")
    assert first is not None
    hand = load_claimed_run(world.id, run, "first", first)
    assert claim_lease(world.id, run, "second") is None
    let_the_lease_die(superuser, run)
    second = claim_lease(world.id, run, "second")
    assert second is not None
    assert second.fence == first.fence + 1
    with pytest.raises(LeaseLost):
        commit_run(hand, (TimerFired(at=hand.manifest.admitted_at),), {})
    assert world.kinds(run) == ["task_submitted"]
    release_lease(world.id, run, "second", second.fence)


@proves("R-SESS-3")
def test_a_commit_that_fails_leaves_nothing_of_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.submit("tool-loop", SUM)
    claimed = claim_lease(world.id, run, "w")
    assert claimed is not None
    hand = load_claimed_run(world.id, run, "w", claimed)

    def full(*_: object, **__: object) -> None:
        raise psycopg.errors.DiskFull

    monkeypatch.setattr("orchestrator.commit.write_phase.store_payloads", full)
    with pytest.raises(OperationalError):
        commit_run(hand, (TimerFired(at=hand.manifest.admitted_at),), {})
    monkeypatch.undo()
    with tenant_transaction(world.id):
        assert Record.objects.filter(run_id=run).count() == 1
        assert not Intent.objects.filter(run_id=run).exists()
        assert Run.objects.get(id=run).version == 0
    commit_run(hand, (TimerFired(at=hand.manifest.admitted_at),), {})
    assert "model_called" in world.kinds(run)


@proves("R-TOOL-8")
def test_every_performed_effect_was_an_intent_before(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        intents = Intent.objects.filter(run_id=run).count()
    effects = [kind for kind in world.kinds(run) if kind in ("model_called", "call_attempted")]
    assert intents == len(effects)


@proves("R-TOOL-8", part="before the call, for everybody to see")
def test_an_intent_is_committed_before_its_call_and_the_outcome_after(
    world: World, superuser: psycopg.Connection
) -> None:
    run, worker, seen = world.submit("tool-loop", SUM), fresh_worker(), list[tuple[str, int, int]]()
    flying = """
    SELECT (SELECT count(*) FROM orchestrator_intent i
             WHERE i.run_id = %(run)s AND i.deadline > clock_timestamp()
               AND (i.kind = 'call_model' OR i.tool_digest <> '' AND i.argument_digest <> '')),
           (SELECT count(*) FROM traces_event e
             WHERE e.run_id = %(run)s AND e.kind IN ('model_replied', 'call_observed'))"""

    def look(point: str) -> None:
        if point in ("committed", "performed"):
            row = superuser.execute(flying, {"run": run}).fetchone()
            assert row is not None
            seen.append((point, *row))

    worker.fault = look
    assert world.drive(run, worker).terminal_code == "SUCCESS"
    *steps, (_, intents, outcomes) = seen
    assert intents == outcomes == 6
    for before, after in zip(steps[::2], steps[1::2], strict=True):
        assert (before[0], after[0]) == ("committed", "performed")
        # Known to everybody before it is sent, and no outcome before the next commit.
        assert before[1:] == after[1:]
        assert before[1] > before[2]


@proves("R-TOOL-5", part="in this order, each step recorded")
def test_the_questions_before_a_call_are_asked_in_their_order(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    calls = world.said(run, "call_checked")
    first = [said["step"] for said in calls if said["call"] == calls[0]["call"]]
    # Nothing that changes something: where its values come from is not asked.
    assert first == ["registered", "arguments", "permitted", "budget", "risk", "approval"]
    assert {said["decision"] for said in calls} == {"allow"}


@proves("R-SESS-8")
@pytest.mark.parametrize("point", ["claimed", "before_commit", "committed", "performed"])
def test_a_killed_worker_changes_nothing(world: World, superuser: psycopg.Connection, point: str) -> None:
    run = world.submit("tool-loop", SUM)
    dying = fresh_worker()
    dying.fault = dies_at(point, 2 if point in ("before_commit", "committed", "performed") else 1)
    with pytest.raises(Killed):
        dying.advance(run)
    let_the_lease_die(superuser, run)
    found = world.drive(run)
    assert found.terminal_code == "SUCCESS"
    assert world.kinds(run).count("fact_committed") == 3
    world.sound(run)


@proves("D9")
def test_a_run_that_kills_three_workers_is_parked(world: World, superuser: psycopg.Connection) -> None:
    run = world.submit("tool-loop", SUM)
    for _ in range(3):
        dying = fresh_worker()
        dying.fault = dies_at("claimed")
        with pytest.raises(Killed):
            dying.advance(run)
        let_the_lease_die(superuser, run)
    assert world.drive(run).status == "paused"
    resume(world.id, run, by=world.people.operator.id, reason="looked at it")
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("R-SESS-1")
@proves("D3")
def test_the_sweep_finds_what_no_message_told_of(world: World, superuser: psycopg.Connection) -> None:
    Clock(superuser).park_the_rest()
    run = world.submit("tool-loop", SUM)
    sweep = Sweeper(world.worker)
    for _ in range(20):
        sweep.tick()
        if world.run(run).status == "completed":
            break
    assert world.run(run).status == "completed"


@proves("R-SESS-13")
def test_a_worker_that_is_to_stop_gives_its_run_back_unharmed(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    stopping = fresh_worker()

    def fault(point: str) -> None:
        stopping.stopping = stopping.stopping or point == "performed"

    stopping.fault = fault
    stopping.advance(run)
    found = world.run(run)
    assert (found.status, found.lease_owner) == ("in_progress", None)
    assert world.drive(run).terminal_code == "SUCCESS"
    world.sound(run)


@proves("R-SESS-5")
def test_only_legal_moves_exist_in_code_and_database(world: World, superuser: psycopg.Connection) -> None:
    with pytest.raises(IllegalMove):
        compute_transition_path(Status.COMPLETED, Status.IN_PROGRESS)
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
        superuser.execute("UPDATE orchestrator_run SET status = 'in_progress' WHERE id = %s", (run,))


def is_core_move(source: Status, target: Status) -> bool:
    """Whether one commit may take a run from one status to the other."""
    try:
        return bool(compute_transition_path(source, target))
    except IllegalMove:
        return False


@proves("R-SESS-5", part="the database takes the moves of the core, and no others")
def test_the_database_takes_exactly_the_moves_that_one_commit_may_make(
    world: World, superuser: psycopg.Connection
) -> None:
    run = world.submit("tool-loop", SUM)
    move = "UPDATE orchestrator_run SET status = %s WHERE id = %s"
    pairs = [(source, target) for source in Status for target in Status if source is not target]
    taken = []
    for source, target in pairs:
        with superuser.transaction(force_rollback=True):
            superuser.execute("SET LOCAL session_replication_role = replica")
            superuser.execute(move, (source.value, run))
            superuser.execute("SET LOCAL session_replication_role = origin")
            with suppress(psycopg.errors.IntegrityConstraintViolation):
                superuser.execute(move, (target.value, run))
                taken.append((source, target))
    assert taken == [pair for pair in pairs if is_core_move(*pair)]


@pytest.mark.parametrize(
    "change",
    [
        *(
            f"{column} = gen_random_uuid()"
            for column in ("tenant_id", "id", "task_id", "workflow_version_id")
        ),
        *(f"{column} = gen_random_uuid()" for column in ("submitted_by", "owner")),
        "manifest_digest = 'another'",
        *(f"{column} = {column} - 1" for column in ("fence", "version", "record_number")),
        # Beside what every commit changes it is seen, too.
        "version = version + 1, owner = gen_random_uuid()",
    ],
)
def test_a_run_keeps_what_it_was_admitted_with_and_never_goes_back(
    world: World, superuser: psycopg.Connection, change: str
) -> None:
    run = world.submit("tool-loop", SUM)
    refused = pytest.raises(
        psycopg.errors.IntegrityConstraintViolation, match="keeps what it was admitted with"
    )
    with refused:
        superuser.execute(f"UPDATE orchestrator_run SET {change} WHERE id = %s", (run,))


@proves("R-SESS-9", part="pause, resume, cancel")
def test_an_operator_pauses_resumes_and_cancels(world: World) -> None:
    who = world.people.operator.id
    run = world.submit("tool-loop", SUM)
    pause(world.id, run, by=who, reason="wait")
    assert world.drive(run).status == "paused"
    resume(world.id, run, by=who, reason="go on")
    cancel(world.id, run, by=who, reason="enough")
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("cancelled", "USER_CANCEL")
    with pytest.raises(RunOver):
        pause(world.id, run, by=who, reason="too late")
    world.sound(run)


@proves("R-TRACE-6")
def test_a_replay_names_the_first_record_that_comes_out_otherwise(
    world: World, superuser: psycopg.Connection
) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    assert replay_stored_run(world.id, run).matches
    number = forge(
        superuser,
        run,
        "outcome = 'classified'",
        lambda body: body.replace(b'"intent":{"set":"task"}', b'"intent":{"set":"tusk"}'),
    )
    report = replay_stored_run(world.id, run)
    assert (report.matches, report.first_difference) == (False, number)


@proves("R-GRAPH-12")
def test_a_run_is_pinned_to_what_was_in_force_when_it_was_admitted(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    with tenant_transaction(world.id):
        body = bytes(ManifestRow.objects.get(id=run).body)
        with pytest.raises(Exception, match=r"permission denied|append-only"), transaction.atomic():
            ManifestRow.objects.filter(id=run).update(digest="0" * 64)
        WorkflowVersion.objects.filter(slug="tool-loop").update(retired_at=Run.objects.get(id=run).created_at)
    assert b'"graph"' in body
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("R-SESS-4")
@proves("R-SESS-11", part="envelope")
def test_recall_needs_no_core_logic(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    with tenant_transaction(world.id):
        assert Snapshot.objects.filter(run_id=run).count() >= 1
        assert Payload.objects.filter(run_id=run).exists()
        found = progress_of(Run.objects.get(id=run))
    assert found.completed_step_count == 2
    assert found.progress_id == len(world.kinds(run))


@proves("R-SESS-2", part="one writer")
def test_of_two_workers_one_has_the_run(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    workers = [fresh_worker() for _ in range(2)]
    threads = [threading.Thread(target=worker.advance, args=(run,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.drive(run)
    assert world.run(run).terminal_code == "SUCCESS"
    world.sound(run)
    with tenant_transaction(world.id):
        assert not Dispatch.objects.filter(run_id=run).exists()
        taken = SignalReceipt.objects.filter(run_id=run).count()
        assert taken == RunSignal.objects.filter(run_id=run).count()


@proves("R-GRAPH-14")
@proves("W6")
def test_the_same_submission_under_the_same_key_is_the_same_run(world: World) -> None:
    first = world.submit("tool-loop", SUM, key="once")
    assert world.submit("tool-loop", SUM, key="once") == first
    assert world.submit("tool-loop", SUM, key="twice") != first
    other = world.submit("tool-loop", SUM, key="once", by=world.people.operator)
    assert other != first


@proves("Z5", part="read in the commit")
def test_a_role_that_is_lost_while_the_run_waits_is_missed_before_the_effect(
    world: World, company: Company
) -> None:
    with company_at(company.url):
        run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
        world.drive(run)
        (request,) = world.open_requests(run)
        with tenant_transaction(world.id):
            Membership.objects.filter(person_id=world.people.submitter.person.id).delete()
        world.decide(request, world.people.approver)
        ended = world.drive(run)
    assert (ended.status, ended.terminal_code) == ("failed", "PERMISSION_DENIED")
    assert company.effects() == []
    assert "lacks submit" in str(world.said(run, "call_not_run"))
    world.sound(run)


@proves("R-GRAPH-15", part="a review that nobody could give is refused at the door")
def test_a_review_of_the_answer_needs_a_gate_for_it(world: World) -> None:
    with pytest.raises(GoalInvalid) as refused:
        world.submit("tool-loop", SUM, requires_human_approval=True)
    assert refused.value.data["pointer"] == "/goal/requires_human_approval"

"""What a retry is asked before it may begin, and what the database itself refuses (R-SESS-9)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, connections

from budgets.actions import change_rates
from budgets.core.errors import RateReached
from budgets.core.rates import Rates
from orchestrator import bundled_content
from orchestrator.core.common.errors import RetriedAlready, RetryRefused, RunNotFound, Stopped, TierTooHigh
from orchestrator.knowledge.actions.email_drafts import keep_draft
from orchestrator.knowledge.actions.workspace import hand_in
from orchestrator.knowledge.queries.memory import facts_of_run
from orchestrator.knowledge.queries.workspace import get_newest_revision
from orchestrator.publishing.actions.versions import publish_boundary
from orchestrator.publishing.actions.workflows import retire_workflow
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.actions.emergency_stop import stop_everything
from orchestrator.runs.actions.retry import Retry, retry_run
from orchestrator.runs.actions.run_signals import cancel
from orchestrator.runs.actions.usage_learning import learn_from
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.retry_lineage import line_of
from orchestrator.tools.queries.destinations import draft_of
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership, Tenant
from tenancy.rest.idempotency import KeyReused
from tests.conftest import House
from tests.factories.retrying import checkpoints, retried
from tests.factories.world import World
from tests.proves import proves
from traces.actions import erase_run_payloads
from traces.models import Event, Payload
from traces.queries import load_salt

SUM = "How much is (12 + 30) * 2?"


def halted(world: World, *, begun: bool = False) -> UUID:
    """A run that was cancelled, before it did anything or (`begun`) once it knew a fact."""
    run = world.submit("tool-loop", SUM)

    def halt(point: str) -> None:
        if world.said(run, "fact_committed") and not world.said(run, "cancel_asked"):
            cancel(world.id, run, by=world.people.operator.id, reason="Not now.")

    if begun:
        replace(world.worker, fault=halt).advance(run)
    else:
        cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    assert world.drive(run).terminal_code == "USER_CANCEL"
    return run


def retire(world: World) -> None:
    with tenant_transaction(world.id):
        version = WorkflowVersion.objects.filter(slug="tool-loop").latest("version")
    retire_workflow(world.id, "tool-loop", version.version, by=world.people.admin.id, reason="a test")


def leave(world: World) -> None:
    with tenant_transaction(world.id):
        Membership.objects.filter(person=world.people.submitter.person).delete()


def stop(world: World) -> None:
    stop_everything("tenant", tenant_id=world.id, by=world.people.admin.id, reason="a test")


def lower(world: World) -> None:
    Tenant.objects.filter(id=world.id).update(highest_autonomy_tier=1)


def flood(world: World) -> None:
    change_rates(world.id, Rates(submissions_per_minute=1), by=world.people.admin.id, reason="a test")


def forbid(world: World) -> None:
    boundary = bundled_content.load_bundled_boundaries()["tool-loop-default"]
    with tenant_transaction(world.id):
        publish_boundary(world.id, boundary.evolve(denied_words=("how much",)), by=None)


def forget(world: World) -> None:
    with tenant_transaction(world.id):
        for run in Run.objects.all():
            erase_run_payloads(run.id)


OBSTACLES: dict[str, tuple[Callable[[World], None], type[Exception], str]] = {
    "the version was retired": (retire, RetryRefused, "was retired"),
    "the submitter left": (leave, RetryRefused, "may not submit any more"),
    "an emergency stop": (stop, Stopped, "tenant"),
    "the tier": (lower, TierTooHigh, "tier"),
    "the rate": (flood, RateReached, "a minute"),
    "the goal is forbidden": (forbid, RetryRefused, "denied_word"),
    "its content was erased": (forget, RetryRefused, "erased"),
}


@proves("R-SESS-9", part="what is in force now holds")
@pytest.mark.parametrize("name", OBSTACLES)
def test_what_refuses_a_task_now_refuses_a_retry_and_leaves_nothing(world: World, name: str) -> None:
    obstacle, refusal, words = OBSTACLES[name]
    run = halted(world, begun=True)
    obstacle(world)
    with pytest.raises(refusal, match=words):
        retried(world, run)
    with tenant_transaction(world.id):
        assert Run.objects.count() == ManifestRow.objects.count() == 1
        assert not AuditEntry.objects.filter(verb="run.retry").exists()


@proves("R-SESS-9", part="retry from a checkpoint")
def test_of_several_who_ask_at_once_one_has_it(world: World) -> None:
    run = halted(world)

    def ask(_: int) -> str:
        try:
            retried(world, run)
        except RetriedAlready:
            return "already"
        finally:
            connections.close_all()
        return "retried"

    with ThreadPoolExecutor(4) as pool:
        said = sorted(pool.map(ask, range(8)))
    assert said == ["already"] * 7 + ["retried"]
    with tenant_transaction(world.id):
        assert Run.objects.filter(retry_of=run).count() == 1


@proves("W6", part="a retry")
def test_the_same_key_is_the_same_retry(world: World) -> None:
    run = halted(world)
    again = retried(world, run, key="once")
    assert retried(world, run, key="once") == again
    with pytest.raises(KeyReused):
        retried(world, run, key="once", record=1)
    with pytest.raises(RetriedAlready):
        retried(world, run, key="twice")


def test_nobody_retries_a_run_of_another_tenant(world: World, house: House) -> None:
    run = halted(world)
    with pytest.raises(RunNotFound):
        retried_in(world.people.other_tenant.id, world, run)


def retried_in(tenant_id: UUID, world: World, run: UUID) -> UUID:
    who = world.people.stranger
    return retry_run(tenant_id, run, Retry(principal=who.id, owner=who.person.id, reason="Mine.")).run


@proves("R-SESS-9", part="retry from a checkpoint")
def test_who_retried_what_and_why_is_on_record(world: World) -> None:
    run = halted(world)
    again = retried(world, run, by=world.people.operator, reason="The model is back.")
    found = world.run(again)
    assert (found.retry_of_id, found.retried_by) == (run, world.people.operator.id)
    # It acts in the name of whoever submitted the task.
    assert (found.submitted_by, found.owner) == (world.run(run).submitted_by, world.run(run).owner)
    with tenant_transaction(world.id):
        entry = AuditEntry.objects.get(verb="run.retry")
        assert line_of(again) == (again, run)
    assert (entry.principal, entry.reason) == (world.people.operator.id, "The model is back.")
    version = {"workflow": "tool-loop", "version": 1}
    assert entry.after == {"run": str(again), "record": found.retry_record, **version}
    assert world.kinds(again)[:2] == ["task_submitted", "run_retried"]
    world.sound(again)


@proves("R-SESS-9", part="what is in force now holds")
def test_what_a_judgement_of_today_finds_stands_in_the_trace(world: World) -> None:
    run = halted(world, begun=True)
    again = retried(world, run)
    with tenant_transaction(world.id):
        begun = Event.objects.filter(run_id=again).order_by("seq")
        first, second, *found = begun.values_list("kind", flat=True)
    assert (first, second, set(found)) == ("task_submitted", "run_retried", {"phase_noted", "policy_decided"})
    assert world.drive(again).terminal_code == "SUCCESS"
    world.sound(again)


REFUSED = {
    "a second retry": "retry_of_id = %(first)s",
    "of a run of another task": "retry_of_id = %(other)s",
    "after a record that is not there": "retry_record = 10000",
    "in another name": "submitted_by = gen_random_uuid()",
    "that another person answers for": "owner = gen_random_uuid()",
    "of another graph": "workflow_version_id = gen_random_uuid()",
}


@proves("R-SESS-9", part="the database decides")
@pytest.mark.parametrize("name", REFUSED)
def test_the_database_takes_no_retry_that_is_none(
    world: World, superuser: psycopg.Connection, name: str
) -> None:
    first, other = halted(world), halted(world)
    again = retried(world, first)
    if name not in ("a second retry", "of a run of another task"):
        cancel(world.id, again, by=world.people.operator.id, reason="Not now.")
        world.drive(again)
    values = {"first": first, "other": other, "again": again, "live": world.submit("tool-loop", SUM)}
    copied = [str(field.column) for field in Run._meta.concrete_fields if field.column not in (None, "id")]
    given = {name: f'"{name}"' for name in copied} | {"retry_of_id": "%(again)s"}
    column, value = REFUSED[name].split(" = ")
    given[column] = value
    statement = (
        f"INSERT INTO orchestrator_run (id, {', '.join(given)})"
        f" SELECT gen_random_uuid(), {', '.join(given.values())} FROM orchestrator_run WHERE id = %(again)s"
    )
    with pytest.raises(psycopg.errors.IntegrityError):
        superuser.execute(statement, values)


@pytest.mark.parametrize("column", ["retry_of_id", "retried_by"])
def test_a_run_keeps_where_it_began(world: World, superuser: psycopg.Connection, column: str) -> None:
    again = retried(world, halted(world))
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="admitted with"):
        superuser.execute(f"UPDATE orchestrator_run SET {column} = gen_random_uuid() WHERE id = %s", [again])
    with tenant_transaction(world.id), pytest.raises(DatabaseError):
        Run.objects.filter(id=again).update(retry_record=0, retry_of=None)


@proves("X6", part="a retry's own copy")
def test_a_retry_has_what_its_state_reaches_and_no_more(world: World) -> None:
    run = halted(world, begun=True)
    newest_of_all, *_, first = checkpoints(world, run)
    again = retried(world, run, record=newest_of_all.record)
    with tenant_transaction(world.id):
        held = {bytes(row.digest): bytes(row.body or b"") for row in Payload.objects.filter(run_id=again)}
        before = {bytes(row.digest): bytes(row.body or b"") for row in Payload.objects.filter(run_id=run)}
        assert held.items() < before.items()
        assert load_salt(again) == load_salt(run)
        (fact,) = facts_of_run(again).values()
        assert bytes.fromhex(fact.digest) in held
        assert erase_run_payloads(again) == len(held)
        assert not Payload.objects.filter(run_id=run, body=None).exists()
    assert world.faults(run) == []
    assert first.record == 0


@proves("R-TOOL-19", part="the drafts of a retry")
def test_a_retry_has_the_drafts_of_the_run_before_it(world: World) -> None:
    run, stranger = halted(world), halted(world)
    with tenant_transaction(world.id):
        draft = keep_draft(run, "k", {"to": ["ada@example.org"]}, "0" * 64)
    again = retried(world, run)
    with tenant_transaction(world.id):
        assert draft_of(again, draft) == draft_of(run, draft) == "0" * 64
        assert draft_of(stranger, draft) is None


@proves("R-BUDGET-4", part="nothing is learnt of a run that began in the middle")
def test_nothing_is_learnt_from_a_retry(world: World) -> None:
    again = retried(world, halted(world))
    assert world.drive(again).terminal_code == "SUCCESS"
    assert not learn_from(again)
    world.sound(again)


@proves("R-TOOL-19", part="the files of a retry")
def test_a_retry_has_the_files_as_they_were_left(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    with tenant_transaction(world.id):
        left = hand_in(world.id, run, {"src/add.py": b"def add(a, b): ..."})
    cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    world.drive(run)
    again = retried(world, run)
    with tenant_transaction(world.id):
        found = get_newest_revision(again)
        assert (found.digest, found.number, found.run) == (left.digest, left.number, again)


def manifest(world: World, run: UUID) -> Any:
    with tenant_transaction(world.id):
        return bytes(ManifestRow.objects.get(id=run).body)


@proves("R-SESS-13", part="a retry follows the rules of the run that made its state")
def test_a_retry_asks_for_no_more_than_its_task_did(world: World) -> None:
    run = world.submit("tool-loop", SUM, budget={"tool_calls": "3"})
    cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    world.drive(run)
    again = retried(world, run)
    for one in (run, again):
        assert b'"tool_calls":"3"' in manifest(world, one)
    assert b'"expected":null' in manifest(world, again)


@proves("R-SESS-9", part="checkpoints do not hang on the stretch that is read at once")
def test_the_same_checkpoints_are_found_however_many_records_are_read_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = halted(world, begun=True)
    whole = [one.record for one in checkpoints(world, run)]
    assert len(whole) > 2
    for stretch in (1, 2, 5):
        monkeypatch.setattr("orchestrator.runs.queries.checkpoints.WINDOW", stretch)
        assert [one.record for one in checkpoints(world, run)] == whole

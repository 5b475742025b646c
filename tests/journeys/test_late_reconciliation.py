"""Runs that ended while nobody knew whether a change had happened, and what people say of it afterwards
(R-TOOL-9, R-SESS-9, G6)."""

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

import psycopg
import pytest

from approvals.core.errors import NotYours
from orchestrator.core.common.errors import (
    EffectInDoubt,
    EffectNotInDoubt,
    NoLookUp,
    RunUnderWay,
    StillRecording,
)
from orchestrator.decisions.actions.late_reconciliation import ask_look_up, reconcile_late_effect
from orchestrator.outbound.gateways.database_authorization import DatabasePermit
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.runs.models.run import Run, RunSignal
from orchestrator.tenants.queries.cross_tenant import due_runs
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.crm import Crm
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.factories.denied import DOWN
from tests.factories.doubts import doubts, say
from tests.factories.foreign import called, onwards, to_the_end
from tests.factories.retrying import checkpoints, retried
from tests.factories.world import World
from tests.journeys.doubting import in_doubt
from tests.journeys.interleaving.clock import Clock
from tests.journeys.test_odd_answers import drops_notes
from tests.journeys.test_open_effects import LOOKUP, NOTE, adds, asked, kinds
from tests.journeys.test_open_effects import crm as crm
from tests.journeys.test_open_effects import model as model
from tests.journeys.test_open_effects import world as world
from tests.proves import proves

ASK = calls(called("crm.add_note", **NOTE))
LOOKS = {"recovery": "lookup", "lookup": LOOKUP, "timeout_ms": 1_500}


@proves("R-SESS-9", part="a change in doubt is reconciled after the end")
@proves("G6", part="what happened is not sent again")
@pytest.mark.parametrize("record", [None, 0], ids=["before the call", "from the beginning"])
def test_a_change_that_happened_after_all_is_asked_about_by_the_retry_and_not_sent(
    world: World, crm: Crm, model: OpenAIServer, record: int | None
) -> None:
    adds(world, crm)
    run = in_doubt(world, crm, model)
    with pytest.raises(EffectInDoubt) as refused:
        retried(world, run)
    (doubt,) = doubts(world, run)
    assert (doubt.why, doubt.blocks, refused.value.data["effects"]) == (
        "in_doubt", True, [doubt.change.effect],
    )  # fmt: skip
    say(world, run, "happened")
    assert (doubts(world, run), world.run(run).terminal_code) == ((), "USER_CANCEL")
    word = world.said(run, "reconciled")[-1]
    assert (word["verdict"], word["by"], word["reason"]) == (
        "happened", str(world.people.approver.id), "I looked.",
    )  # fmt: skip
    world.sound(run)
    model.play(*([] if record is None else [ASK]), said("Done."))
    again = retried(world, run, record=record)
    onwards(world, again)
    assert (kinds(world, again), crm.posts()) == (["reconciliation"], 1)
    assert to_the_end(world, again, "happened").terminal_code == "SUCCESS"
    assert crm.posts() == 1
    world.sound(again)


@proves("G6", part="what happened is not sent again in other words")
def test_a_retry_that_asks_for_it_in_other_words_is_asked_about_it_too(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm)
    run = in_doubt(world, crm, model)
    say(world, run, "happened")
    other = calls(called("crm.add_note", **{**NOTE, "text": "Thanks a lot."}))
    model.play(other, other, said("Done."))
    again = retried(world, run, record=0)
    onwards(world, again)
    assert (kinds(world, again), crm.posts()) == (["reconciliation"], 1)
    # It is another note: the model is told so, and may make it.
    assert to_the_end(world, again, "not_happened").terminal_code == "SUCCESS"
    assert [note["text"] for note in crm.notes] == ["Thank you.", "Thanks a lot."]
    world.sound(again)


@proves("R-SESS-9", part="what did not happen is sent by the retry")
@pytest.mark.parametrize("more", [{}, {"honours_keys": True}, LOOKS], ids=["plain", "keys", "look-up"])
def test_a_change_that_did_not_happen_is_sent_by_the_retry(
    world: World, crm: Crm, model: OpenAIServer, more: dict[str, Any]
) -> None:
    adds(world, crm, **({"recovery": "keys"} if "honours_keys" in more else more))
    if "honours_keys" in more:
        # Its repetition is cut, too.
        crm.drops, crm.makes, crm.times = True, False, 10
        run = asked(world, model)
        to_the_end(world, run, "cancel")
        crm.makes, crm.times = True, 0
    else:
        run = in_doubt(world, crm, model, made=False)
    say(world, run, "not_happened")
    before = crm.posts()
    model.play(said("Done."))
    again = retried(world, run)
    assert to_the_end(world, again).terminal_code == "SUCCESS"
    assert (crm.posts(), len(crm.notes)) == (before + 1, 1)
    world.sound(run)
    world.sound(again)


@proves("R-APPR-5", part="who says what became of a change after the end")
def test_only_those_who_decide_say_what_became_of_it_and_one_word_counts(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm)
    run = in_doubt(world, crm, model)
    (doubt,) = doubts(world, run)
    effect = doubt.change.effect
    for who in (world.people.submitter, world.people.operator):
        with pytest.raises(NotYours):
            reconcile_late_effect(world.id, run, effect, by=who.id, verdict="happened", reason="Surely.")
    reconcile_late_effect(
        world.id, run, effect, by=world.people.approver.id, verdict="not_happened", reason="No."
    )
    with pytest.raises(EffectNotInDoubt):
        reconcile_late_effect(
            world.id, run, effect, by=world.people.approver.id, verdict="happened", reason="Yes."
        )
    with pytest.raises(StillRecording):
        retried(world, run)
    world.drive(run)
    with pytest.raises(EffectNotInDoubt):
        reconcile_late_effect(
            world.id, run, effect, by=world.people.approver.id, verdict="happened", reason="Yes."
        )
    assert [one["verdict"] for one in world.said(run, "reconciled")] == ["cancel", "not_happened"]


@proves("R-APPR-5", part="nobody says of their own run what happened, in the database")
def test_the_database_takes_no_word_of_the_submitter_nor_of_a_run_under_way(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm)
    crm.drops = True
    run = asked(world, model)
    with tenant_transaction(world.id), pytest.raises(Exception, match="of an ended run of somebody else"):
        _signal(world, run, world.people.approver.id)
    with pytest.raises(RunUnderWay):
        reconcile_late_effect(
            world.id, run, "0" * 32, by=world.people.approver.id, verdict="happened", reason="Yes."
        )
    to_the_end(world, run, "cancel")
    with tenant_transaction(world.id), pytest.raises(Exception, match="of an ended run of somebody else"):
        _signal(world, run, world.people.submitter.id)


def _signal(world: World, run: UUID, by: UUID) -> None:
    RunSignal.objects.create(
        tenant_id=world.id, run_id=run, kind="reconciled", payload={}, by=by, at="2026-01-01T00:00:00Z"
    )


@proves("R-TOOL-9", part="looked up after the end")
@pytest.mark.parametrize("conclusive", [True, False])
@pytest.mark.parametrize("made", [True, False])
def test_a_change_is_looked_up_after_the_end(
    world: World, crm: Crm, model: OpenAIServer, made: bool, conclusive: bool
) -> None:
    adds(world, crm, **LOOKS, conclusive=conclusive)
    crm.away = True
    run = in_doubt(world, crm, model, made=made)
    (doubt,) = doubts(world, run)
    ask_look_up(world.id, run, doubt.change.effect, by=world.people.approver.id)
    world.drive(run)
    # It is away still, which says nothing.
    assert len(doubts(world, run)) == 1
    crm.away = False
    ask_look_up(world.id, run, doubt.change.effect, by=world.people.approver.id)
    world.drive(run)
    known = made or conclusive
    assert (len(doubts(world, run)), crm.posts()) == (0 if known else 1, 1)
    settled = [one["by"] for one in world.said(run, "effect_settled")]
    assert settled == (["done"] if made else ["absent"] if conclusive else [])
    assert world.run(run).terminal_code == "USER_CANCEL"
    world.sound(run)


@proves("R-TOOL-9", part="a look-up after a person's word")
def test_a_change_that_was_said_not_to_have_happened_and_is_heard_of_is_in_doubt_again(
    world: World, crm: Crm, model: OpenAIServer, superuser: psycopg.Connection
) -> None:
    adds(world, crm)
    run = in_doubt(world, crm, model)
    (doubt,) = doubts(world, run)
    say(world, run, "not_happened")
    assert any(one.refused is None for one in checkpoints(world, run))
    superuser.execute(
        "INSERT INTO orchestrator_runsignal (tenant_id, run_id, kind, payload, at) VALUES (%s, %s, 'late',"
        " json_build_object('effect', %s::text, 'status', 'tool_answered', 'observation', NULL), now())",
        [world.id, run, doubt.change.effect],
    )
    world.drive(run)
    (again,) = doubts(world, run)
    assert (again.why, again.blocks) == ("reopened", True)
    with pytest.raises(EffectInDoubt):
        retried(world, run)
    say(world, run, "happened")
    retry = retried(world, run)
    onwards(world, retry)
    assert (kinds(world, retry), crm.posts()) == (["reconciliation"], 1)
    world.sound(run)


@proves("R-TOOL-15", part="an undo in doubt is reconciled after the end")
@pytest.mark.parametrize("verdict", ["happened", "not_happened"])
def test_an_undo_in_doubt_is_reconciled_after_the_end(
    world: World, crm: Crm, model: OpenAIServer, verdict: Literal["happened", "not_happened"]
) -> None:
    adds(world, crm, compensation=drops_notes(world, crm))
    crm.drops, crm.first_plain = True, 1
    model.play(ASK, DOWN)
    run = world.submit("tool-loop", "Add the note Thank you. to ada.")
    found = to_the_end(world, run)
    assert [one["path"] for one in crm.seen] == ["/people/ada/notes", "/drops"], found.reason
    (doubt,) = doubts(world, run)
    assert (doubt.why, doubt.change.tool) == ("undo_in_doubt", "crm.drop_note")
    with pytest.raises(EffectInDoubt, match=r"crm\.drop_note"):
        retried(world, run)
    say(world, run, verdict)
    assert doubts(world, run) == ()
    # Where the note stands a retry knows of it; where it is gone, nothing is as it was.
    able = [one.record for one in checkpoints(world, run) if one.refused is None]
    assert bool(able) == (verdict == "not_happened")
    if able:
        crm.drops = False
        model.play(said("Done."))
        assert to_the_end(world, retried(world, run)).terminal_code == "SUCCESS"
    assert crm.posts() == 2
    world.sound(run)


def test_a_tool_without_a_look_up_is_not_looked_up(world: World, crm: Crm, model: OpenAIServer) -> None:
    adds(world, crm)
    run = in_doubt(world, crm, model)
    (doubt,) = doubts(world, run)
    with pytest.raises(NoLookUp):
        ask_look_up(world.id, run, doubt.change.effect, by=world.people.approver.id)


@proves("R-SESS-9", part="a word that no worker heard of is found, however long ago the run ended")
def test_a_word_on_a_run_that_ended_long_ago_is_found_by_the_sweep(
    world: World, crm: Crm, model: OpenAIServer, superuser: psycopg.Connection
) -> None:
    adds(world, crm)
    run = in_doubt(world, crm, model)
    # A look finds a hundred; the tenants of earlier tests may be as many.
    Clock(superuser).park_the_rest()
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE orchestrator_run SET finished_at = now() - interval '9 days' WHERE id = %s", [run]
        )
    assert run not in due_runs(100)
    (doubt,) = doubts(world, run)
    reconcile_late_effect(
        world.id,
        run,
        doubt.change.effect,
        by=world.people.approver.id,
        verdict="happened",
        reason="I looked.",
    )
    assert run in due_runs(100)
    world.drive(run)
    assert run not in due_runs(100)


@proves("R-BUDGET-17", part="a look-up after the end asks the database first")
def test_a_look_up_after_the_end_goes_out_only_as_it_was_asked_for(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm, **LOOKS)
    crm.away = True
    run = in_doubt(world, crm, model)
    (doubt,) = doubts(world, run)
    effect = doubt.change.effect

    def permitted(named: str = effect, *, fence: int = 0) -> str:
        known = world.run(run).fence
        refused = DatabasePermit(world.id, run, named, known + fence, look=True, late=True).check()
        return "ok" if refused is None else refused.reason

    assert permitted() == "fence"
    with tenant_transaction(world.id):
        until = database_now() + timedelta(minutes=1)
        Run.objects.filter(id=run).update(lease_owner="w", lease_until=until)
    assert permitted() == "not_asked"
    ask_look_up(world.id, run, effect, by=world.people.approver.id)
    assert (permitted(), permitted("0" * 32), permitted(fence=-1)) == ("ok", "intent", "fence")
    with tenant_transaction(world.id):
        EmergencyStop.objects.create(
            scope="tool", tenant_id=world.id, target="crm.add_note", reason="drill", at=database_now()
        )
    assert permitted() == "emergency_stop"

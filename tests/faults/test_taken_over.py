"""What a worker finds that takes over from a dead one, and may not or cannot do again what that one did."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import orjson
import psycopg
import pytest

from budgets.models import Entry
from orchestrator.runs.actions.emergency_stop import stop_everything
from orchestrator.runs.actions.run_signals import cancel, has_untaken_signals, pause, resume
from orchestrator.runs.models.resource_lock import ConflictClaim
from orchestrator.runs.queries.runs import state_now
from tenancy.actions import remove_member
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.foreign import onwards
from tests.faults.cases import BLIND, KEYED, READ, Case
from tests.proves import proves

pytestmark = pytest.mark.slow
PAST = """
UPDATE orchestrator_intent SET deadline = deadline - interval '1 hour' WHERE run_id = %s"""
NOBODY = "http://127.0.0.1:9"
# What a run that kills its workers has had of them.
POISONED = 3


def standings(case: Case) -> dict[str, str]:
    """What the run holds to have done, by tool."""
    with tenant_transaction(case.world.id):
        return {deed.tool: deed.standing for deed in state_now(case.run).deeds.values()}


def stopped(case: Case, _monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool is stopped before the call is repeated."""
    stop_everything("tool", tenant_id=case.world.id, target=KEYED, by=None, reason="Look into it.")


def unreachable(_case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers where the company was."""
    monkeypatch.setenv("INTERLOCK_DEMO_URL", NOBODY)
    monkeypatch.setattr("orchestrator.worker.effects.effect_executor.sleep", lambda seconds: None)


@proves("R-TOOL-9", part="a repetition that was not sent says nothing of the first send")
@pytest.mark.parametrize("tool", [KEYED])
@pytest.mark.parametrize("hindered", [stopped, unreachable])
def test_what_a_dead_worker_sent_is_in_doubt_where_it_cannot_be_sent_again(
    case: Case,
    tool: str,
    hindered: Callable[[Case, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case.dies("sent")
    hindered(case, monkeypatch)
    onwards(case.world, case.run)
    (asked,) = case.world.open_requests(case.run)
    assert (asked.kind, asked.tool) == ("reconciliation", tool)
    assert (case.effects(), case.resolutions()) == (1, ["repeated", "in_doubt"])
    assert standings(case) == {tool: "in_doubt"}


@proves("R-TOOL-9", part="a repetition waits a moment for whoever is away")
@pytest.mark.parametrize("tool", [KEYED])
@pytest.mark.parametrize(("point", "before"), [("before_dispatch", 0), ("sent", 1)])
def test_a_repetition_is_made_once_the_company_is_there_again(
    case: Case, tool: str, point: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.dies(point)
    assert case.effects() == before
    here = os.environ["INTERLOCK_DEMO_URL"]
    monkeypatch.setenv("INTERLOCK_DEMO_URL", NOBODY)

    def comes_back(_seconds: float) -> None:
        monkeypatch.setenv("INTERLOCK_DEMO_URL", here)

    monkeypatch.setattr("orchestrator.worker.effects.effect_executor.sleep", comes_back)
    found = onwards(case.world, case.run)
    assert (found.terminal_code, case.effects(), case.resolutions()) == ("SUCCESS", 1, ["repeated"]), tool
    case.world.sound(case.run)


@proves("R-TOOL-15", part="what a dead worker sent is told where everything is stopped")
@pytest.mark.parametrize("tool", [KEYED])
def test_a_stopped_tenant_is_told_of_what_a_dead_worker_sent(case: Case, tool: str) -> None:
    case.dies("sent")
    stop_everything("tenant", tenant_id=case.world.id, by=None, reason="Look into it.")
    onwards(case.world, case.run)
    assert case.effects() == 1
    (asked,) = case.world.open_requests(case.run)
    assert (asked.kind, asked.tool, standings(case)) == ("reconciliation", tool, {tool: "in_doubt"})


@proves("R-TOOL-9", part="a repetition that was held back says nothing of the first send")
@pytest.mark.parametrize("tool", [KEYED])
def test_a_repetition_that_came_too_late_says_nothing_of_the_first_send(
    case: Case, tool: str, superuser: psycopg.Connection
) -> None:
    case.dies("sent")

    def oversleep(point: str) -> None:
        if point == "dispatched":
            with superuser.transaction():
                superuser.execute("SET LOCAL session_replication_role = replica")
                superuser.execute(PAST, [case.run])
            cancel(case.world.id, case.run, by=case.world.people.operator.id, reason="Enough.")

    replace(case.world.worker, name=fresh_id().hex, fault=oversleep).advance(case.run)
    onwards(case.world, case.run)
    assert (case.effects(), case.resolutions()[0]) == (1, "repeated")
    assert "abandoned" not in case.resolutions()
    assert set(standings(case)) == {tool}


@proves("G10", part="a new attempt waits, too")
@pytest.mark.parametrize("tool", [BLIND])
def test_a_new_attempt_waits_for_what_another_run_writes_to(case: Case, tool: str) -> None:
    case.dies("before_dispatch")
    with tenant_transaction(case.world.id):
        claims = ConflictClaim.objects.filter(run_id=case.run)
        other, later = fresh_id(), database_now() + timedelta(hours=1)
        assert claims.update(run_id=other, effect="another", until=later) == 1
    while "conflict_waited" not in case.world.kinds(case.run):
        found = case.world.drive(case.run)
        assert found.status == "in_progress"
    assert case.effects() == 0
    with tenant_transaction(case.world.id):
        ConflictClaim.objects.filter(run_id=other).update(until=database_now() - timedelta(hours=1))
    assert onwards(case.world, case.run).terminal_code == "SUCCESS"
    assert (case.effects(), case.world.said(case.run, "conflict_waited")[0]["tool"]) == (1, tool)
    case.world.sound(case.run)


@proves("Z5", part="no new attempt in the name of whoever was removed")
@pytest.mark.parametrize("tool", [BLIND])
def test_a_new_attempt_is_not_made_for_whoever_was_removed_meanwhile(case: Case, tool: str) -> None:
    case.dies("before_dispatch")
    for role in Role:
        remove_member(case.world.id, case.world.people.submitter.person, role)
    onwards(case.world, case.run)
    assert (case.effects(), case.resolutions()) == (0, ["abandoned"])
    refused = [said for said in case.world.said(case.run, "call_checked") if said["decision"] == "deny"]
    assert [said["rule"] for said in refused][:1] == ["principal_scopes"]
    assert [said["tool"] for said in case.world.said(case.run, "failure_committed")][:1] == [tool]


@proves("R-SESS-2", part="a run that kills its workers starts nothing, whatever waits for it")
@pytest.mark.parametrize("tool", [BLIND])
def test_a_run_that_kills_workers_is_paused_though_an_approval_waits_for_it(case: Case, tool: str) -> None:
    assert has_untaken_signals(case.world.id, case.run)
    for _ in range(POISONED):
        case.dies("claimed")
    found = case.world.drive(case.run)
    assert (found.status, case.effects()) == ("paused", 0)
    assert "poison run" in case.world.said(case.run, "run_paused")[0]["reason"]
    assert "call_attempted" not in case.world.kinds(case.run), tool


@proves("R-SESS-2", part="nor what waits for a further attempt")
@pytest.mark.parametrize("tool", [BLIND])
def test_a_run_that_kills_workers_makes_no_further_attempt_when_it_was_resumed(case: Case, tool: str) -> None:
    world, operator = case.world, case.world.people.operator.id
    case.dies("before_dispatch")
    pause(world.id, case.run, by=operator, reason="Wait.")
    assert (world.drive(case.run).status, case.resolutions()) == ("paused", ["abandoned"])
    resume(world.id, case.run, by=operator, reason="Go on.")
    for _ in range(POISONED):
        case.dies("claimed")
    assert (world.drive(case.run).status, case.effects(), tool) == ("paused", 0, case.tool)


@pytest.mark.parametrize("tool", [BLIND])
def test_what_recovery_gave_up_is_in_no_doubt_though_the_run_kills_its_workers(case: Case, tool: str) -> None:
    case.dies("before_dispatch")
    case.dies("before_commit")
    case.dies("before_commit")
    found = case.world.drive(case.run)
    assert (found.status, case.effects(), tool) == ("paused", 0, case.tool)
    assert case.resolutions() == ["abandoned"]


@proves("R-BUDGET-2", part="a lost model call of a run that kills its workers")
@pytest.mark.parametrize("tool", [READ])
def test_a_run_whose_model_calls_kill_workers_is_paused_and_pays_for_them(case: Case, tool: str) -> None:
    # The first reply was lost with its worker.
    for _ in range(POISONED - 1):
        case.dies("claimed")
    found = case.world.drive(case.run)
    assert (found.status, found.terminal_code, tool) == ("paused", "", case.tool)
    (settled,) = case.world.said(case.run, "budget_settled")
    assert settled["unknown"]
    with tenant_transaction(case.world.id):
        entries = Entry.objects.filter(run_id=case.run, effect_id=settled["effect"])
        held = orjson.loads(entries.get(cause="reserve").amounts)["reserved"]
        paid = orjson.loads(entries.get(cause="settle").amounts)["used"]
    assert {name: amount for name, amount in paid.items() if name != "wall_clock_seconds"} == held
    case.world.sound(case.run)

"""What became of changes that were in doubt when their run ended, by the API."""

from uuid import UUID

import pytest

from tenancy.actions import add_member
from tenancy.core.roles import Role, Scope, scopes_of
from tests.doors.api.program import Program, program, refusal
from tests.doubles.crm import Crm
from tests.doubles.openai_server import OpenAIServer, said
from tests.factories.foreign import onwards
from tests.factories.world import World
from tests.journeys.doubting import in_doubt
from tests.journeys.test_open_effects import LOOKUP, NOTE, adds, kinds
from tests.journeys.test_open_effects import crm as crm
from tests.journeys.test_open_effects import model as model
from tests.journeys.test_open_effects import world as world
from tests.proves import proves


@pytest.fixture
def ended(world: World, crm: Crm, model: OpenAIServer) -> str:
    """A run that was cancelled while nobody knew whether its note was added."""
    adds(world, crm)
    return str(in_doubt(world, crm, model))


@pytest.fixture
def reviewer(world: World) -> Program:
    """A program that may decide."""
    return program(world.id, Role.REVIEWER, owner=world.people.approver.person)


@proves("R-TOOL-9", part="reconciled by the API after the end")
def test_a_change_in_doubt_is_listed_answered_and_the_run_retried(
    world: World, crm: Crm, model: OpenAIServer, operator: Program, reviewer: Program, ended: str
) -> None:
    (row,) = reviewer.get(f"/runs/{ended}/effects").json()["results"]
    assert (row["tool"], row["why"], row["blocks_retry"], row["can_look_up"], row["arguments"]) == (
        "crm.add_note", "in_doubt", True, False, NOTE,
    )  # fmt: skip
    assert row["request"] is not None
    refused = operator.post(f"/runs/{ended}/retry", {"reason": "It is back."})
    assert refusal(refused) == (409, "effect-in-doubt")
    assert refused.json()["data"] == {
        "tools": "crm.add_note", "effects": [row["effect"]], "see": f"/api/v1/runs/{ended}/effects",
    }  # fmt: skip
    word = {"effect": row["effect"], "verdict": "not_happened", "reason": "I looked."}
    answer = reviewer.post(f"/runs/{ended}/effects/reconcile", word)
    assert (answer.status_code, answer.json()["terminal_code"]) == (202, "USER_CANCEL")
    assert reviewer.get(f"/runs/{ended}/effects").json()["results"][0]["being_recorded"]
    assert refusal(reviewer.post(f"/runs/{ended}/effects/reconcile", word)) == (409, "effect-not-in-doubt")
    world.drive(UUID(ended))
    assert reviewer.get(f"/runs/{ended}/effects").json() == {"results": []}
    model.play(said("Done."))
    again = operator.post(f"/runs/{ended}/retry", {"reason": "It is back."})
    assert again.status_code == 202, again.json()
    run = UUID(again.json()["run"]["id"])
    assert onwards(world, run).terminal_code == "SUCCESS"
    assert (kinds(world, run), crm.posts()) == ([], 2)


@proves("R-APPR-5", part="who says what became of a change after the end, by the API")
def test_who_may_not_decide_says_nothing_of_it(world: World, ended: str, reviewer: Program) -> None:
    (row,) = reviewer.get(f"/runs/{ended}/effects").json()["results"]
    word = {"effect": row["effect"], "verdict": "happened", "reason": "Surely."}
    # A key of whoever submitted it, though it may decide in general.
    add_member(world.id, world.people.submitter.person, Role.REVIEWER)
    own = program(world.id, Role.REVIEWER, owner=world.people.submitter.person)
    answer = own.post(f"/runs/{ended}/effects/reconcile", word)
    assert refusal(answer) == (403, "not-yours")
    assert answer.json()["data"]["rule"] == "own_run"
    for role in Role:
        if Scope.DECIDE not in scopes_of((role,)):
            answer = program(world.id, role).post(f"/runs/{ended}/effects/look-up", {"effect": row["effect"]})
            assert refusal(answer) == (403, "scope-missing"), role


@proves("R-TOOL-9", part="looked up by the API after the end")
def test_a_change_is_looked_up_where_its_tool_says_how(
    world: World, crm: Crm, model: OpenAIServer, reviewer: Program
) -> None:
    adds(world, crm, recovery="lookup", lookup=LOOKUP, timeout_ms=1_500)
    crm.away = True
    run = in_doubt(world, crm, model)
    crm.away = False
    (row,) = reviewer.get(f"/runs/{run}/effects").json()["results"]
    assert row["can_look_up"]
    answer = reviewer.post(f"/runs/{run}/effects/look-up", {"effect": row["effect"]})
    assert answer.status_code == 202, answer.json()
    world.drive(run)
    assert reviewer.get(f"/runs/{run}/effects").json() == {"results": []}
    assert world.said(run, "call_recovered")[-1]["resolution"] == "found"


def test_a_tool_without_a_look_up_and_an_unknown_change_are_refused(reviewer: Program, ended: str) -> None:
    (row,) = reviewer.get(f"/runs/{ended}/effects").json()["results"]
    asked = reviewer.post(f"/runs/{ended}/effects/look-up", {"effect": row["effect"]})
    assert refusal(asked) == (409, "no-look-up")
    unknown = {"effect": "0" * 32, "verdict": "happened", "reason": "I looked."}
    assert refusal(reviewer.post(f"/runs/{ended}/effects/reconcile", unknown)) == (409, "effect-not-in-doubt")

"""The page on which people say what became of changes that were in doubt when their run ended."""

from uuid import UUID

import pytest

from tests.doors.pages.browsers import words
from tests.doors.pages.people import at, text
from tests.doubles.crm import Crm
from tests.doubles.openai_server import OpenAIServer
from tests.factories.doubts import doubts
from tests.factories.world import World
from tests.journeys.doubting import in_doubt
from tests.journeys.test_open_effects import LOOKUP, adds
from tests.journeys.test_open_effects import crm as crm
from tests.journeys.test_open_effects import model as model
from tests.journeys.test_open_effects import world as world
from tests.proves import proves


@pytest.fixture
def ended(world: World, crm: Crm, model: OpenAIServer) -> UUID:
    """A run that was cancelled while nobody knew whether its note was added."""
    adds(world, crm)
    return in_doubt(world, crm, model)


@proves("R-TOOL-9", part="reconciled on a page after the end")
def test_a_reviewer_says_what_happened_on_a_page_that_the_run_and_its_retry_lead_to(
    world: World, ended: UUID
) -> None:
    who, address = at(world.people.approver), f"/runs/{ended}/effects"
    run = who.get(f"/runs/{ended}")
    assert "1 effect is in doubt" in words(run)
    assert f'href="{address}"' in text(run)
    retry = at(world.people.operator).get(f"/runs/{ended}/retry")
    assert "Nobody has said whether this happened: crm.add_note" in words(retry)
    assert f'href="{address}"' in text(retry)
    (doubt,) = doubts(world, ended)
    shown = words(who.get(address))
    assert "crm.add_note" in shown
    assert doubt.change.key in shown
    sent = {"effect": doubt.change.effect, "verdict": "not_happened"}
    for wrong, said in (({}, "Say how you know"), ({"verdict": "perhaps", "reason": "x"}, "Say whether")):
        answer = who.post(address, {**sent, **wrong})
        assert (answer.status_code, said in words(answer)) == (422, True)
    answer = who.post(address, {**sent, "reason": "I looked."})
    assert answer["Location"] == address
    assert "being recorded" in words(who.get(address))
    world.drive(ended)
    assert "It is known of every change" in words(who.get(address))
    assert "effect is in doubt" not in words(who.get(f"/runs/{ended}"))
    assert "Looks at the goal" in text(at(world.people.operator).get(f"/runs/{ended}/retry"))


@proves("R-APPR-5", part="who says what became of a change after the end, on a page")
def test_who_may_not_decide_is_told_why_and_refused(world: World, ended: UUID) -> None:
    (doubt,) = doubts(world, ended)
    sent = {"effect": doubt.change.effect, "verdict": "happened", "reason": "Surely."}
    who = at(world.people.admin)
    shown = words(who.get(f"/runs/{ended}/effects"))
    assert "You cannot say what happened" in shown or "It happened" in shown
    who = at(world.people.submitter)
    assert "You cannot say what happened: nobody decides on their own run" in words(
        who.get(f"/runs/{ended}/effects")
    )
    assert who.post(f"/runs/{ended}/effects", sent).status_code == 403
    assert len(doubts(world, ended)) == 1


def test_a_look_up_is_offered_where_the_tool_names_one(world: World, crm: Crm, model: OpenAIServer) -> None:
    adds(world, crm, recovery="lookup", lookup=LOOKUP, timeout_ms=1_500)
    crm.away = True
    run = in_doubt(world, crm, model)
    crm.away = False
    who = at(world.people.approver)
    assert "Look it up now" in words(who.get(f"/runs/{run}/effects"))
    (doubt,) = doubts(world, run)
    who.post(f"/runs/{run}/effects", {"effect": doubt.change.effect, "look_up": "1"})
    world.drive(run)
    assert doubts(world, run) == ()

"""The review queue by page and by API: one verb behind both doors (R-TOOL-19)."""

from typing import Any

import pytest

from tenancy.core.roles import Role
from tests.doors.api.doors import some_review
from tests.doors.api.program import program, refusal
from tests.doors.pages.people import HOSTILE, at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def item(world: World) -> str:
    """An item of a run that waits."""
    run = world.submit("tool-loop", "How much is 1 + 1?")
    return str(some_review(world.id, run))


@proves("R-TOOL-19", part="review queue, on its page")
def test_a_reviewer_takes_an_item_and_answers_it_on_its_page(world: World, item: str) -> None:
    client = at(make_somebody(world.house.tenant, Role.REVIEWER))
    assert "A claim" in text(client.get("/reviews"))
    where = f"/reviews/{item}"
    assert client.post(where, {"do": "take"}).status_code == 302
    assert "It is yours" in text(client.get(where))
    refused = client.post(where, {"do": "answer", "finding": "perhaps", "note": ""})
    assert refused.status_code == 422
    assert client.post(where, {"do": "answer", "finding": "objected", "note": HOSTILE}).status_code == 302
    shown = text(client.get(where))
    assert "objected" in shown
    assert "<script>alert(1)" not in shown
    assert client.post(where, {"do": "release"}).status_code == 409


@proves("R-TOOL-19", part="review queue, for whom it is not")
def test_the_page_says_why_somebody_may_not_answer(world: World, item: str) -> None:
    own = at(world.house.people.submitter)
    assert own.post(f"/reviews/{item}", {"do": "take"}).status_code == 403
    admin_of_run = at(make_somebody(world.house.tenant, Role.AUDITOR))
    assert "the scope decide is missing" in text(admin_of_run.get(f"/reviews/{item}"))


@proves("R-TOOL-19", part="review queue, by the API")
def test_a_program_lists_takes_and_answers_once(world: World, item: str) -> None:
    reviewer, other = program(world.id, Role.REVIEWER), program(world.id, Role.REVIEWER)

    def rows(**query: Any) -> list[str]:
        return [one["id"] for one in reviewer.get("/reviews", query).json()["results"]]

    assert (rows(state="waiting"), rows(state="answered"), rows(queue="finance")) == ([item], [], [])
    taken = reviewer.post(f"/reviews/{item}/take", {}).json()
    assert (taken["state"], taken["finding"]) == ("taken", None)
    answer = {"finding": "confirmed", "note": "It is so."}
    assert refusal(other.post(f"/reviews/{item}/answer", answer)) == (409, "review-refused")
    assert reviewer.post(f"/reviews/{item}/answer", answer).json()["note"] == "It is so."
    assert refusal(reviewer.post(f"/reviews/{item}/answer", answer)) == (409, "review-refused")
    assert reviewer.get(f"/reviews/{item}").json()["state"] == "answered"
    assert rows(state="answered") == [item]

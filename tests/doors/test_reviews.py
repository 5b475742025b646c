"""The review queue by page and by API: one verb behind both doors (R-TOOL-19)."""

import re
from typing import Any

import pytest

from orchestrator.reviews.models import ReviewItem, ReviewWord
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Person
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


@proves("R-TOOL-19", part="review queue, of two who answer")
@pytest.mark.parametrize("held", ["answer", "take"])
def test_whoever_comes_second_is_told_who_was_first_and_keeps_their_note(
    world: World, item: str, held: str
) -> None:
    first, second = (make_somebody(world.house.tenant, Role.REVIEWER) for _ in range(2))
    word = {"do": "answer", "finding": "confirmed"}
    at(first).post(f"/reviews/{item}", {**word, "do": held, "note": "It is so."})
    Person.objects.filter(id=first.person.id).update(name="Ada First")
    answer = at(second).post(f"/reviews/{item}", {**word, "note": "What I worked out\nin an hour"})
    shown = text(answer)
    alert = shown.partition('role="alert"')[2].partition("</section>")[0]
    assert answer.status_code == 409
    assert "Ada First" in alert
    assert "data-time" in alert
    assert "What I worked out\nin an hour</textarea>" in answer.content.decode()
    assert "Ada First" in text(at(second).get(f"/reviews/{item}"))


@proves("R-UI-12", part="the reviews in pages")
def test_each_of_many_reviews_is_on_one_page_the_gravest_first(world: World, item: str) -> None:
    with tenant_transaction(world.id):
        row, now = ReviewItem.objects.get(id=item), database_now()
        ReviewItem.objects.bulk_create(
            ReviewItem(
                tenant_id=world.id, run_id=row.run_id, key=f"k{n}", queue="support", subject=f"Claim {n:03}",
                severity=("low", "critical")[n % 2], reason="Look", evidence=[], sha256="", at=now,
            ) for n in range(110)
        )  # fmt: skip
        answered = ReviewItem.objects.filter(subject__startswith="Claim", subject__lt="Claim 055")
        ReviewWord.objects.bulk_create(
            ReviewWord(
                tenant_id=world.id, item_id=one, number=0, kind="answered", finding="confirmed", note="Yes",
                by=world.people.approver.id, at=now,
            ) for one in answered.values_list("id", flat=True)
        )  # fmt: skip
    client, seen = at(world.people.approver), list[str]()
    for start in ("/reviews", "/reviews?tab=answered"):
        where, pages = start, 0
        while where:
            shown = text(client.get(where)).partition('id="answered"' if start == "/reviews" else "\0")[0]
            found, pages = re.findall(r"Claim \d{3}", shown), pages + 1
            assert len(found) <= 50
            seen += found
            following = re.findall(r'href="([^"]+)" rel="next"', shown)
            where = following[0].replace("&amp;", "&") if following else ""
        assert pages == 2
    assert seen[0] == "Claim 055"
    assert sorted(seen) == [f"Claim {n:03}" for n in range(110)]
    assert client.get("/reviews?cursor=none").status_code == 200


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

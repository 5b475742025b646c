"""Taking a yes back in a browser: by one key, while it is offered, and nothing moves while it counts down."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from playwright.sync_api import expect

from approvals.actions.undo import take_effect
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, axe, no_sideways, themes
from tests.browser.test_inbox import ARMED_MS, opened, outcome
from tests.browser.test_runs import EACH_MOTION, SHIFTS, Motion
from tests.conftest import House
from tests.factories.approvals import ASKED, Desk, open_desk
from tests.factories.undoing import hold_time, kept_of, let_undo, pass_time
from tests.proves import proves

LOW: dict[str, Any] = {"risk": "local_write", "has_amount": False}


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened_desk:
        yield opened_desk


@proves("R-UI-4", part="undo by key while it is offered")
def test_a_yes_is_taken_back_by_a_key_and_seen_by_others(
    page_as: PageAs, desk: Desk, superuser: psycopg.Connection
) -> None:
    let_undo(desk.id, desk.house.people.admin)
    first, second = (desk.ask(arguments={**ASKED, "order_id": f"A-{n}"}, **LOW) for n in (1, 2))
    other = opened(page_as("second-reviewer"), f"/approvals/{first.id}")
    expect(other.locator("#pill")).to_have_attribute("data-pill", "live")
    page = opened(page_as("reviewer"))
    page.keyboard.press("a")
    hold_time(superuser, first)
    expect(page.locator(f"#card-{second.id}")).to_be_visible()
    expect(page.locator(f"#offer-{first.id}")).to_contain_text("takes effect in")
    expect(other.locator(".decide")).to_contain_text("Approved by the reviewer, takes effect in")
    expect(other.locator("[value=approve]")).to_have_count(0)
    page.keyboard.press("z")
    expect(page.locator("#messages")).to_contain_text("Taken back.")
    expect(page.locator(f"#card-{first.id}")).to_be_visible()
    assert outcome(desk.house, first) == ("pending", "")
    assert [one.fate for one in kept_of(first)] == ["undone"]
    expect(other.locator("[value=approve]")).to_be_visible()


@proves("R-UI-4", part="what could be undone counts down without moving anything")
@EACH_MOTION
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_it_counts_down_in_its_place_and_then_says_that_it_took_effect(
    page_as: PageAs, desk: Desk, superuser: psycopg.Connection, width: int, motion: Motion
) -> None:
    let_undo(desk.id, desk.house.people.admin)
    first, second = (desk.ask(arguments={**ASKED, "order_id": f"A-{n}"}, **LOW) for n in (1, 2))
    desk.say(first, desk.house.people.approver)
    page = page_as("reviewer", width=width)
    page.emulate_media(reduced_motion=motion)
    opened(page, f"/approvals?done={first.id}")
    expect(page.locator(f"#request-{second.id}")).to_be_visible()
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    page.wait_for_timeout(ARMED_MS)
    page.evaluate(SHIFTS)
    page.wait_for_timeout(2_000)
    pass_time(superuser, first)
    take_effect(desk.id, first.run_id)
    expect(page.locator(f"#offer-{first.id}")).to_contain_text("it took effect")
    expect(page.locator(f"#offer-{first.id} button")).to_have_count(0)
    expect(page.locator(f"#request-{first.id}.settled")).to_be_visible()
    assert page.evaluate("[window.shifts, window.shifted]") == [0, []]
    assert outcome(desk.house, first) == ("decided", "approve")


# Further than the yes is kept back, and not so far that the whole page would be too old to decide on.
HELD_SECONDS = 80
AHEAD = "() => { const now = Date.now.bind(Date); Date.now = () => now() + 100_000; }"


def test_a_clock_that_is_ahead_disables_nothing_and_asks_once(
    page_as: PageAs, desk: Desk, superuser: psycopg.Connection
) -> None:
    let_undo(desk.id, desk.house.people.admin)
    request = desk.ask(**LOW)
    desk.say(request, desk.house.people.approver)
    hold_time(superuser, request, HELD_SECONDS)
    page = opened(page_as("reviewer"), f"/approvals?tab=open&open={request.id}")
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if sent.headers.get("hx-request") else None)
    with page.expect_request(lambda sent: bool(sent.headers.get("hx-request"))):
        page.evaluate(AHEAD)
    page.wait_for_timeout(2_500)
    assert len([one for one in asked if f"/approvals/{request.id}" in one]) == 1
    expect(page.locator(f"#offer-{request.id} button")).to_be_enabled()


@proves("R-UI-11", part="axe finds nothing where a yes can be taken back")
@pytest.mark.parametrize("width", [WIDE, NARROWEST])
def test_what_offers_it_is_fit_for_everybody(page_as: PageAs, desk: Desk, width: int) -> None:
    let_undo(desk.id, desk.house.people.admin)
    asked = [desk.ask(arguments={**ASKED, "order_id": f"A-{n}"}, **LOW) for n in range(3)]
    for request in asked[:2]:
        desk.say(request, desk.house.people.approver)
    page = page_as("reviewer", width=width)
    for path in ("/approvals", f"/approvals/{asked[0].id}"):
        page.goto(path)
        for theme in themes(page):
            axe(page, theme)
        no_sideways(page)

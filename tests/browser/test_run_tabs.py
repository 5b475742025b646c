"""Every part of a run's page follows in a browser, and nothing that is read moves (R-UI-3, R-SESS-11)."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from config.devstack.embedded import EmbeddedValkey
from tests.browser.conftest import PageAs
from tests.browser.harness import WIDE, axe
from tests.browser.test_runs import photograph
from tests.conftest import House
from tests.doors.pages.people import refund
from tests.doubles.company import Company
from tests.factories.announcing import announced
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

HELD = {
    "messages": "#voices > li", "facts": "#fact-rows > tr", "ledger": "#ledger-rows > tr",
    "audit": "#act-rows > tr", "raw": "#raw-lines > div", "plan": "#run-graph .graph-passed",
}  # fmt: skip
PLACES = "rows => rows.map((row) => [row.getBoundingClientRect().x, row.getBoundingClientRect().y])"
IDS = "rows => rows.map((row) => row.id || row.getAttribute('href'))"


@pytest.fixture
def world(house: House, company: Company, valkey: EmbeddedValkey) -> Iterator[World]:
    """A furnished house whose commits are announced to the site."""
    with announced(valkey):
        yield make_world(house)


def opened(page: Page, address: str) -> Page:
    """A page that follows."""
    page.goto(address)
    expect(page.locator("#pill")).to_have_text("Live")
    return page


def decided(world: World, company: Company, run: UUID) -> None:
    """The run goes to its end."""
    with company_at(company.url):
        world.approve_all(run)


@proves("R-UI-3", part="every tab is live")
@pytest.mark.parametrize("tab", list(HELD))
def test_a_tab_follows_to_what_a_new_page_shows(
    page_as: PageAs, world: World, company: Company, tab: str
) -> None:
    run = refund(world, company)
    page = opened(page_as("auditor"), f"/runs/{run}?tab={tab}")
    page.mouse.move(5, 5)
    held = page.locator(HELD[tab])
    before = held.evaluate_all(IDS)
    decided(world, company, run)
    expect(page.locator("#run-standing")).to_contain_text("Succeeded", timeout=15_000)
    if page.locator("#live-new").count():
        page.locator("#live-new").click()
    followed = held.evaluate_all(IDS)
    assert set(before) < set(followed)
    photograph(page, f"followed-{tab}", "light", WIDE)
    page.reload()
    fresh = held.evaluate_all(IDS)
    assert followed[-len(fresh) :] == fresh


@proves("R-UI-3", part="nothing moves in any tab")
@pytest.mark.parametrize("tab", list(HELD))
def test_what_is_read_does_not_move(page_as: PageAs, world: World, company: Company, tab: str) -> None:
    run = refund(world, company)
    page = opened(page_as("auditor"), f"/runs/{run}?tab={tab}")
    held = page.locator(HELD[tab])
    held.first.hover()
    before, places = held.count(), held.evaluate_all(PLACES)
    decided(world, company, run)
    expect(page.locator("#run-standing")).to_contain_text("Succeeded", timeout=15_000)
    if tab != "plan":
        expect(page.locator("#live-new")).to_contain_text("new ")
        assert held.count() == before
    # In the graph more nodes are lit, in between those that were.
    same = 1 if tab == "plan" else before
    assert held.evaluate_all(PLACES)[:same] == places[:same]


@proves("R-SESS-11", part="the first of two votes is seen by who watches the run")
def test_the_first_of_two_votes_reaches_who_watches(page_as: PageAs, world: World, company: Company) -> None:
    run = refund(world, company, order_id="A-1003")
    watching = opened(page_as("auditor"), f"/runs/{run}")
    deciding = opened(page_as("second-reviewer"), f"/runs/{run}")
    expect(watching.locator("#run-standing")).to_contain_text("(0 agreed)")
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver)
    expect(watching.locator("#run-standing")).to_contain_text("(1 agreed)")
    expect(deciding.locator(f"#card-state-{request.id}")).to_contain_text("the reviewer")


def test_rows_that_arrive_say_the_time_as_the_page_does(
    page_as: PageAs, world: World, company: Company
) -> None:
    run = refund(world, company)
    page = page_as("auditor")
    page.goto("/preferences")
    page.context.add_cookies([{"name": "zone", "value": "Asia/Kathmandu", "url": page.url}])
    opened(page, f"/runs/{run}")
    page.mouse.move(5, 5)
    decided(world, company, run)
    expect(page.locator("#run-standing")).to_contain_text("Succeeded", timeout=15_000)
    if page.locator("#live-new").count():
        page.locator("#live-new").click()
    times = page.locator("#timeline-rows .line-at")
    followed = times.all_inner_texts()
    page.reload()
    assert followed == times.all_inner_texts()


def test_without_sockets_a_tab_is_asked_for(page_as: PageAs, world: World, company: Company) -> None:
    run = refund(world, company)
    page = page_as("auditor")
    page.route_web_socket("**/ws/**", lambda socket: socket.close())
    page.goto(f"/runs/{run}?tab=facts")
    expect(page.locator("#pill")).to_have_text("Polling", timeout=20_000)
    page.mouse.move(5, 5)
    decided(world, company, run)
    expect(page.locator("#run-standing")).to_contain_text("Succeeded", timeout=15_000)
    expect(page.locator("#fact-rows > tr")).to_have_count(4)


@proves("R-UI-2", part="an empty list follows")
def test_the_first_run_appears_in_an_empty_list(page_as: PageAs, world: World) -> None:
    page = opened(page_as("operator"), "/runs")
    page.mouse.move(5, 5)
    needing = opened(page_as("operator"), "/runs?view=needs")
    expect(page.get_by_text("No run yet")).to_be_visible()
    axe(page)
    run = world.submit("support-refund", "Refund order A-1001", inputs={"order_id": "A-1001"})
    expect(page.locator(f"#run-{run}")).to_be_visible()
    expect(page.get_by_text("No run yet")).to_be_hidden()
    expect(page.get_by_text("1 run", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Pause…")).to_be_visible()
    expect(needing.get_by_text("Nothing here")).to_be_visible()


@proves("R-UI-2", part="a selection outlives what happens")
def test_a_selected_run_stays_selected_while_it_moves(
    page_as: PageAs, world: World, company: Company
) -> None:
    run = refund(world, company)
    page = opened(page_as("operator"), "/runs")
    page.locator(f"#run-{run} [data-pick]").check()
    page.mouse.move(5, 5)
    decided(world, company, run)
    expect(page.locator(f"#run-{run}")).to_contain_text("Succeeded", timeout=15_000)
    expect(page.locator(f"#run-{run} [data-pick]")).to_be_checked()
    expect(page.locator(f"#run-{run}")).to_have_attribute("data-picked", "")


def test_a_page_that_follows_nothing_says_so(page_as: PageAs, world: World) -> None:
    page = page_as("operator")
    page.goto("/new")
    expect(page.locator("#pill")).to_contain_text("As of")
    said = page.locator("#pill").get_attribute("title") or ""
    assert "nothing on it moves by itself" in said

"""The pages of runs in a browser: keys, filters, themes, narrow screens, rows that arrive (R-UI-2)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from uuid import UUID

import pytest
from playwright.sync_api import Page, Route, expect

from orchestrator.runs.actions.saved_views import save_view
from orchestrator.runs.queries.run_list import Filters
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, Messages, axe, no_sideways, themes
from tests.doors.pages.people import HOSTILE, refund
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World, company_at
from tests.proves import proves

TABS = ("plan", "messages", "ledger", "audit", "facts", "raw", "files")
SHIFTS = """() => { window.shifts = 0; window.shifted = []; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) {
    window.shifts += entry.value;
    for (const { node } of entry.sources)
      window.shifted.push(node?.outerHTML?.slice(0, 90) ?? `${node?.data}`);
  }
}).observe({ type: "layout-shift", buffered: false }); }"""
Motion = Literal["reduce", "no-preference"]
# Windows are opened for people who want no motion; what moves for the others must not push anything either.
EACH_MOTION = pytest.mark.parametrize(
    "motion", ["reduce", pytest.param("no-preference", marks=pytest.mark.slow)]
)


def photograph(page: Page, name: str, theme: str, width: int) -> None:
    """Keep a picture where `INTERLOCK_SHOTS` names a folder."""
    if folder := os.environ.get("INTERLOCK_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}-{theme}-{width}.png", full_page=True)


def addresses(waiting: UUID, ended: UUID) -> dict[str, str]:
    """Every page of this part, by the name of its picture."""
    tabs = {tab: f"/runs/{ended}?tab={tab}" for tab in TABS}
    return {
        "overview": "/", "runs": "/runs", "runs-filtered": "/runs?status=failed&tool=orders.lookup",
        "views": "/runs/views", "views-new": "/runs/views?status=failed&tool=orders.lookup",
        "runs-cost": "/runs?cost__gt=0&created_after=2020-01-01T00:00", "run-waiting": f"/runs/{waiting}",
        "run-ended": f"/runs/{ended}", "run-each": f"/runs/{ended}?rows=each",
        "run-search": f"/runs/{ended}?q=A-1001",
        **tabs, "row": f"/runs/{ended}/rows/12", "pause": f"/runs/{waiting}/ask?wish=pause",
        "cancel": f"/runs/{waiting}/ask?wish=cancel", "new": "/new", "submit": "/new/support-refund",
        "submit-incident": "/new/incident-triage",
    }  # fmt: skip


@pytest.fixture
def runs(world: World, company: Company) -> tuple[UUID, UUID]:
    """A run that waits, said in hostile words, and one that has ended."""
    # A control character in a goal is refused as unsafe; everything else goes on.
    harmful = HOSTILE.replace("\x1b", "")
    mine = world.people.admin.id
    save_view(world.id, Filters(view="needs", tool="x" * 200), name="W" * 60, by=mine)
    save_view(world.id, Filters(view="problems", q=HOSTILE[:90]), name="Of last week", by=mine)
    return refund(world, company, objective=harmful, reason=harmful[:300]), refund(world, company, whole=True)


@proves("R-UI-11", part="axe on the pages of runs")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.slow
def test_axe_finds_nothing(page_as: PageAs, runs: tuple[UUID, UUID], width: int) -> None:
    page = page_as("admin", width=width)
    for name, address in addresses(*runs).items():
        page.goto(address)
        no_sideways(page)
        for theme in themes(page):
            photograph(page, name, theme, width)
            axe(page, theme)


@pytest.mark.slow
def test_nothing_scrolls_sideways_on_the_narrowest_screen(page_as: PageAs, runs: tuple[UUID, UUID]) -> None:
    page = page_as("admin", width=NARROWEST)
    for name, address in addresses(*runs).items():
        page.goto(address)
        photograph(page, name, "light", NARROWEST)
        no_sideways(page)


@proves("R-UI-11", part="the first page where nothing was run")
def test_the_first_page_offers_what_can_be_started(page_as: PageAs, world: World) -> None:
    page = page_as("operator")
    page.goto("/")
    photograph(page, "fresh", "light", WIDE)
    axe(page)
    page.get_by_role("button", name="Run it: Refund a hand grinder").click()
    expect(page.locator("#run-standing")).to_contain_text("Queued")


@proves("R-UI-2", part="keyboard")
def test_the_list_is_walked_filtered_and_opened_by_keys(page_as: PageAs, runs: tuple[UUID, UUID]) -> None:
    waiting, ended = runs
    page = page_as("operator")
    page.goto("/runs")
    page.keyboard.press("j")
    expect(page.locator("[data-item][data-at]")).to_have_id(f"run-{ended}")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(f"#run-{waiting} input")).to_be_checked()
    page.keyboard.press("/")
    page.keyboard.type("A-1001")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?*q=A-1001*")
    expect(page.locator("[data-item]")).to_have_count(1)
    page.get_by_role("link", name="named A-1001").click()
    expect(page.locator("[data-item]")).to_have_count(2)
    # A page shows what it has before its keys are bound.
    page.wait_for_load_state()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{ended}")
    page.keyboard.press("4")
    expect(page.get_by_text("add up to the meter")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("u")
    page.wait_for_url("**/runs")


@proves("R-UI-2", part="saved views by keys, and in the palette")
def test_a_view_is_kept_opened_and_removed_by_keys(page_as: PageAs, world: World) -> None:
    page = page_as("operator")
    page.goto("/runs?view=problems&tool=orders.lookup")
    page.keyboard.press("v")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    photograph(page, "view-new", "light", WIDE)
    page.keyboard.type("Broken look-ups")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?view=problems&tool=orders.lookup")
    expect(page.locator(".tabs [aria-current]")).to_have_text("Broken look-ups")
    page.goto("/preferences")
    page.keyboard.press("Control+k")
    page.locator("#palette-input").fill("broken")
    expect(page.locator("#palette-list li")).to_have_text("View Broken look-ups")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?view=problems&tool=orders.lookup")
    page.keyboard.press("v")
    page.wait_for_url("**/runs/views")
    page.keyboard.press("j")
    for label in ("Open first", "Rename or remove…"):
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_contain_text(label)
    page.keyboard.press("Enter")
    photograph(page, "views", "light", WIDE)
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Remove Broken look-ups")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No view yet")).to_be_visible()


def test_a_row_opens_in_place_with_what_came_back(page_as: PageAs, runs: tuple[UUID, UUID]) -> None:
    page = page_as("auditor")
    page.goto(f"/runs/{runs[1]}")
    page.locator("#row-12 summary").first.click()
    expect(page.locator("#row-12 .opened")).to_contain_text("Answer observed")
    page.locator("#row-12 .opened summary", has_text="Observation").first.click()
    expect(page.locator("#row-12 .opened")).to_contain_text("A-1001")


# The next answer's text breaks off, and only that one's.
# What was said before is taken away: it must not pass for what is said now.
BROKEN_OFF = """() => { const { text } = Response.prototype;
  document.querySelector("#row-12 .notice").remove();
  Response.prototype.text = async () => {
    Response.prototype.text = text;
    throw new TypeError("network error");
  }; }"""


def test_a_row_that_cannot_be_read_says_so_and_can_be_opened_again(
    page_as: PageAs, runs: tuple[UUID, UUID], no_messages: Messages
) -> None:
    no_messages.expect("503")
    page = page_as("auditor")
    page.goto(f"/runs/{runs[1]}")
    late: list[Route] = []

    def keep(route: Route) -> None:
        late.append(route)

    page.route("**/rows/12", keep)
    page.locator("#row-12 summary").first.click()
    expect(page.locator("#row-12 .notice-loading")).to_have_text("Reading the row")
    expect(page.locator("#row-12 .opened")).to_have_attribute("aria-busy", "true")
    late[0].fulfill(status=503)
    expect(page.locator("#row-12 .notice")).to_contain_text("could not be read; nothing of it is lost")
    expect(page.locator("#row-12").get_by_role("link", name="Open this row")).to_be_visible()
    page.unroute("**/rows/12")
    page.evaluate(BROKEN_OFF)
    for there in (".notice-error", ".opened"):
        for _ in range(2):
            page.locator("#row-12 summary").first.click()
        expect(page.locator(f"#row-12 {there}")).to_contain_text(
            "could not be read" if there == ".notice-error" else "Answer observed"
        )


@proves("R-UI-3", part="live")
@EACH_MOTION
def test_rows_arrive_without_moving_what_is_read(
    page_as: PageAs, world: World, company: Company, motion: Motion
) -> None:
    run = refund(world, company)
    page = page_as("auditor")
    page.emulate_media(reduced_motion=motion)
    page.goto(f"/runs/{run}")
    expect(page.locator("#pill")).to_contain_text("Live")
    page.locator("#timeline-rows > li").first.hover()
    rows = page.locator("#timeline-rows > li").count()
    page.evaluate(SHIFTS)
    with company_at(company.url):
        world.approve_all(run)
    expect(page.locator("#run-standing")).to_contain_text("Succeeded", timeout=15_000)
    expect(page.locator("#live-new")).to_contain_text("new row")
    assert page.locator("#timeline-rows > li").count() == rows
    assert page.evaluate("[window.shifts, window.shifted]") == [0, []]
    page.locator("#live-new").click()
    expect(page.locator("#timeline-rows > li").last).to_contain_text("Run ended")
    shown = page.locator("#timeline-rows > li").evaluate_all("rows => rows.map((row) => row.id)")
    page.reload()
    assert page.locator("#timeline-rows > li").evaluate_all("rows => rows.map((row) => row.id)") == shown


@proves("R-UI-11", part="nothing moves in a list while rows arrive under the pointer")
@EACH_MOTION
def test_no_row_of_a_list_moves_while_others_arrive_under_the_pointer(
    page_as: PageAs, world: World, company: Company, motion: Motion
) -> None:
    refund(world, company)
    lists = {"/runs": page_as("operator"), "/approvals": page_as("reviewer")}
    for path, page in lists.items():
        page.emulate_media(reduced_motion=motion)
        page.goto(path)
        expect(page.locator("#pill")).to_contain_text("Live")
        page.locator("[data-item]").first.hover()
        page.evaluate(SHIFTS)
    refund(world, company, order_id="A-1002")
    for page in lists.values():
        expect(page.locator("#live-new")).to_contain_text("1 new", timeout=15_000)
        expect(page.locator("[data-item]")).to_have_count(1)
        assert page.evaluate("[window.shifts, window.shifted]") == [0, []]


@proves("R-UI-11", part="nothing moves while a run goes its way")
@EACH_MOTION
def test_nothing_above_the_rows_moves_from_a_run_s_submission_to_its_end(
    page_as: PageAs, world: World, company: Company, motion: Motion
) -> None:
    with company_at(company.url):
        run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
        page, first = page_as("operator"), page_as("operator")
        for one in (page, first):
            one.emulate_media(reduced_motion=motion)
        page.goto(f"/runs/{run}")
        first.goto("/")
        for one in (page, first):
            expect(one.locator("#pill")).to_contain_text("Live")
            one.evaluate(SHIFTS)
        world.drive(run)
        expect(page.locator("#run-standing")).to_contain_text("Needs approval", timeout=15_000)
        expect(first.locator("#overview-needs")).to_contain_text("1 open", timeout=15_000)
        world.approve_all(run)
    expect(page.locator("#run-standing")).to_contain_text("Succeeded", timeout=15_000)
    for one in (page, first):
        assert one.evaluate("[window.shifts, window.shifted]") == [0, []]


def test_a_run_can_be_read_and_cancelled_without_scripts(page_as: PageAs, runs: tuple[UUID, UUID]) -> None:
    page = page_as("operator", script=False)
    page.goto(f"/runs/{runs[0]}")
    page.get_by_role("link", name="Cancel run").click()
    page.get_by_label("Why").fill("not needed")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.get_by_text("Cancel asked for.")).to_be_visible()
    page.goto(f"/runs/{runs[1]}")
    page.locator("#row-12 summary").first.click()
    page.locator("#row-12").get_by_role("link", name="Open this row").click()
    expect(page.get_by_text("Answer observed")).to_be_visible()


@proves("R-UI-10", part="submitting again, in a browser")
def test_a_run_that_ended_badly_is_submitted_again_from_its_page(
    page_as: PageAs, world: World, company: Company, no_messages: Messages
) -> None:
    no_messages.expect("422")
    run = refund(world, company, order_id="A-1007", whole=True)
    page = page_as("operator")
    page.goto(f"/runs/{run}")
    expect(page.locator("#run-standing")).to_contain_text("58.50 USD were refunded already.")
    photograph(page, "run-not-refundable", "light", WIDE)
    page.get_by_role("link", name="Submit again").click()
    expect(page.get_by_text("A copy of the task of")).to_be_visible()
    expect(page.get_by_label("Order order_id")).to_have_value("A-1007")
    page.get_by_label("Order order_id").fill("")
    page.get_by_label("Cost").fill("much")
    page.get_by_role("button", name="Submit the task").click()
    expect(page.locator("[data-errors]")).to_be_focused()
    photograph(page, "submit-again-wrong", "light", WIDE)
    axe(page)
    page.locator("[data-errors]").get_by_role("link", name="Cost").click()
    expect(page.get_by_label("Cost")).to_be_focused()
    page.get_by_label("Cost").fill("0.5")
    page.get_by_label("Order order_id").fill("A-1001")
    page.get_by_role("button", name="Submit the task").click()
    expect(page.locator("#run-standing")).to_contain_text("Queued")
    assert str(run) not in page.url

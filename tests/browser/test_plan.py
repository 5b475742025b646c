"""The Plan tab in a browser: its steps change as the run moves, for everybody (R-UI-3)."""

from __future__ import annotations

from uuid import UUID

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, axe, no_sideways, themes
from tests.browser.test_run_tabs import decided, opened
from tests.browser.test_run_tabs import world as world
from tests.browser.test_runs import photograph
from tests.doors.pages.people import refund
from tests.doubles.company import Company
from tests.doubles.openai_server import Call
from tests.factories.foreign import REFUND_AND_LOOK_UPS, Obedient, foreign, onwards
from tests.factories.hostile import hostile
from tests.factories.world import World, company_at
from tests.proves import proves

CHIPS = ".step-line > .chip"
# Where a word goes beyond the line it stands in.
BEYOND = """lines => lines.filter((line) => line.scrollWidth > line.clientWidth + 1)
  .map((line) => line.innerText)"""


def chips(page: Page) -> list[str]:
    """How the steps stand, in order."""
    return page.locator(CHIPS).all_inner_texts()


@pytest.fixture
def several(world: World, company: Company, settings: Settings) -> UUID:
    """A run whose model asked for a tool that nobody has, a refund, and two look-ups; the refund waits."""
    wanted = (Call(hostile("C-nobody", 180), {}, "b1"), *REFUND_AND_LOOK_UPS)
    with foreign(settings, Obedient(*wanted)), company_at(company.url):
        run = world.submit("tool-loop", "Refund order A-1001: 10.00 EUR, broken.")
        onwards(world, run)
    return run


@proves("R-UI-3", part="plan with dependency state")
def test_the_steps_change_while_the_run_moves(page_as: PageAs, world: World, company: Company) -> None:
    run = refund(world, company)
    page = opened(page_as("auditor"), f"/runs/{run}")
    page.keyboard.press("2")
    page.wait_for_url("**?tab=plan")
    expect(page.locator("nav.tabs [aria-current]")).to_have_text("Plan")
    expect(page.locator("#pill")).to_have_text("Live")
    assert chips(page) == ["Done", "Done", "Waits", "Ahead", "Ahead"]
    page.evaluate("document.body.dataset.same = 'page'")
    (asked,) = world.open_requests(run)
    with company_at(company.url):
        world.decide(asked, world.people.approver)
        world.drive(run)
    expect(page.locator("#step-node-send > .step-line > .chip")).to_have_text("Waits")
    assert chips(page) == ["Done", "Done", "Done", "Done", "Waits"]
    decided(world, company, run)
    expect(page.locator("#step-node-send > .step-line > .chip")).to_have_text("Done")
    expect(page.locator("#run-plan")).to_contain_text("The run is over")
    assert page.locator("body").get_attribute("data-same") == "page"
    followed = page.locator("#run-plan").inner_text()
    page.reload()
    assert page.locator("#run-plan").inner_text() == followed


@proves("R-UI-3", part="plan with dependency state")
def test_a_step_leads_to_what_it_waits_for_to_its_request_and_to_its_node(
    page_as: PageAs, world: World, company: Company
) -> None:
    run = refund(world, company)
    page = page_as("auditor", script=False)
    page.goto(f"/runs/{run}?tab=graph")
    page.locator("#step-node-draft").get_by_role("link", name="step 3").click()
    expect(page.locator("#step-node-refund:target")).to_be_visible()
    page.locator("#step-node-refund > .step-line").get_by_role("link", name="refund").click()
    expect(page.locator("#node-refund")).to_be_visible()
    page.locator("#step-node-refund > .step-line").get_by_role("link", name="The call").click()
    page.wait_for_url(f"**/runs/{run}/rows/*")
    page.go_back()
    page.locator("#step-node-refund > .step-line").get_by_role("link", name="The request").click()
    page.wait_for_url("**/approvals/*")


def test_the_focus_stays_on_its_link_while_the_steps_before_it_gain_some(
    page_as: PageAs, world: World, company: Company
) -> None:
    run = refund(world, company)
    page = opened(page_as("auditor"), f"/runs/{run}?tab=plan")
    expect(page.locator("#pill")).to_have_text("Live")
    link = page.locator("#step-node-send > .step-line").get_by_role("link", name="send")
    link.focus()
    (asked,) = world.open_requests(run)
    with company_at(company.url):
        world.decide(asked, world.people.approver)
        world.drive(run)
    expect(page.locator("#step-node-send > .step-line > .chip")).to_have_text("Waits")
    expect(link).to_be_focused()


@proves("R-UI-11", part="axe on a plan")
@pytest.mark.parametrize("width", [WIDE, NARROW, NARROWEST])
def test_a_plan_is_read_at_any_width_whatever_its_tools_are_called(
    page_as: PageAs, several: UUID, width: int
) -> None:
    page = page_as("auditor", width=width)
    page.goto(f"/runs/{several}?tab=plan")
    assert chips(page) == ["Refused", "Waits", "Behind", "Behind", "Behind"]
    no_sideways(page)
    assert page.locator(".step-line").evaluate_all(BEYOND) == []
    for theme in themes(page):
        photograph(page, "plan-several", theme, width)
        axe(page, theme)


@pytest.mark.parametrize("width", [WIDE, NARROWEST])
def test_a_plan_that_is_over_is_read_at_any_width(
    page_as: PageAs, world: World, company: Company, width: int
) -> None:
    run = refund(world, company)
    page = page_as("auditor", width=width)
    page.goto(f"/runs/{run}?tab=plan")
    photograph(page, "plan-waiting", "light", width)
    (asked,) = world.open_requests(run)
    with company_at(company.url):
        world.decide(asked, world.people.approver, "reject", reason="No.")
        world.drive(run)
    page.reload()
    assert chips(page) == ["Done", "Done", "Refused", "Left out", "Left out"]
    no_sideways(page)
    for theme in themes(page):
        photograph(page, "plan-over", theme, width)
        axe(page, theme)

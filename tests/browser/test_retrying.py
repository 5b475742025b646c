"""Beginning an ended run again in a real browser: by keys, without a script, on every width."""

from uuid import UUID

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, axe, no_sideways, themes
from tests.browser.test_keyboard import walked
from tests.browser.test_runs import photograph
from tests.doors.pages.people import HOSTILE
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World, company_at
from tests.proves import proves


@pytest.fixture
def failed(world: World, company: Company) -> UUID:
    """A refund that was rejected after its look-ups, in words that are no friend of ours."""
    objective = HOSTILE.replace("\x1b", "")

    with company_at(company.url):
        run = world.submit("support-refund", objective, inputs={"order_id": "A-1001"})
        world.drive(run)
        (request,) = world.open_requests(run)
        world.decide(request, world.people.approver, "reject", reason="Not this one.")
        assert world.drive(run).terminal_code == "CONFIRM_REQUIRED"
    return run


@proves("R-UI-3", part="retry from a point of its past")
@proves("R-UI-11", part="axe on the page of a retry")
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("width", [WIDE, NARROW, NARROWEST])
def test_the_page_is_whole_on_every_width_and_in_both_themes(
    page_as: PageAs, failed: UUID, width: int
) -> None:
    page = page_as("admin", width=width)
    for name, address in {"retry": f"/runs/{failed}/retry", "run-failed": f"/runs/{failed}"}.items():
        page.goto(address)
        no_sideways(page)
        for theme in themes(page):
            photograph(page, name, theme, width)
            axe(page, theme)
        assert walked(page) == []


@proves("R-UI-3", part="retry from a point of its past")
def test_a_run_is_begun_again_by_keys_alone(page_as: PageAs, world: World, failed: UUID) -> None:
    page = page_as("operator")
    page.goto(f"/runs/{failed}")
    expect(page.get_by_role("link", name="Retry from")).to_be_visible()
    page.keyboard.press("t")
    page.wait_for_url(f"**/runs/{failed}/retry")
    chosen = page.get_by_role("radio", checked=True)
    expect(chosen).to_have_count(1)
    first = chosen.get_attribute("value")
    chosen.focus()
    page.keyboard.press("ArrowDown")
    now = page.get_by_role("radio", checked=True)
    assert now.get_attribute("value") != first
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.id") != "reason":
        page.keyboard.press("Tab")
    page.keyboard.type("The approver was mistaken.")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/retry" not in url and str(failed) not in url)
    expect(page.locator("#run-line")).to_contain_text(f"Retry of {str(failed)[-8:]} from record")
    photograph(page, "run-retried", "light", WIDE)
    page.locator("#run-line a").first.click()
    expect(page.locator("#run-line")).to_contain_text("Retried as")


@proves("R-UI-11", part="a retry without a script")
def test_it_works_with_scripts_switched_off(page_as: PageAs, failed: UUID) -> None:
    page = page_as("operator", script=False)
    page.goto(f"/runs/{failed}")
    page.get_by_role("link", name="Retry from").click()
    page.get_by_label("Why").fill("Once more.")
    page.get_by_role("button", name="Retry from there").click()
    expect(page.locator("#run-line")).to_contain_text("Retry of")

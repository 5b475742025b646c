"""Tools, workflows, budgets, people, keys, audit log and system in a browser (R-UI-5, 6, 7, 9, 11)."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.urls import resolve
from playwright.sync_api import Page, expect

from orchestrator.core.tools.tool_update import asked_change
from orchestrator.tools.actions.tool_updates import change_tool
from tests.browser import test_inbox as inbox
from tests.browser import test_runs as runs
from tests.browser import test_shell as shell
from tests.browser.conftest import PageAs
from tests.browser.harness import (
    NARROW,
    NARROWEST,
    WIDE,
    Messages,
    axe,
    no_sideways,
    photograph,
    themes,
)  # fmt: skip
from tests.conftest import House
from tests.doors.pages.test_every_page import EVERY, address, belongings
from tests.factories.tenancy import apart
from tests.factories.world import World, make_world
from tests.proves import proves

CARD = f"/approvals/{UUID(int=1)}"
# Pages that other tests look at in more than one state; every other page of the console is looked at here.
ELSEWHERE = {
    resolve(path.partition("?")[0]).url_name
    for path in (*shell.PAGES, *runs.addresses(UUID(int=1), UUID(int=2)).values(), *inbox.PLACES, CARD)
}
FOUND: list[str] = []
STATES = (
    "/workflows/tool-loop", "/tools/calculator.evaluate", "/workflows/_publish?from=tool-loop", "/boundaries",
    "/boundaries/tool-loop-default", "/boundaries/_publish",
)  # fmt: skip
HOSTILE = "<b onclick=x>bold</b> \u202egnp \x1b[31m" + "w" * 200


@pytest.fixture
def world(house: House) -> World:
    """A furnished house in which something was changed, once with a hostile reason."""
    made = make_world(house)
    change_tool(
        made.id, "calculator.evaluate", asked_change({"price_usd": "0.25", "risk": "local_write"}),
        by=made.people.admin.id, reason=HOSTILE,
    )  # fmt: skip
    made.drive(made.submit("tool-loop", "How much is 1 + 1?"))
    return made


def pages(page: Page, world: World) -> list[str]:
    """Every page that no other test looks at, found in the table of addresses."""
    things = apart(lambda: belongings(world))
    if not FOUND:
        new = (one for one in EVERY if resolve(address(one, things)).url_name not in ELSEWHERE)
        FOUND.extend(one for one in new if whole(page, address(one, things)))
    return [*(address(route, things) for route in FOUND), *STATES]


def whole(page: Page, path: str) -> bool:
    """Whether an address has a page, and no file or fragment or another page's form."""
    answer = page.request.get(path, headers={"accept": "text/html"}, max_redirects=0)
    return answer.status == 200 and "<html" in answer.text()


@proves("R-UI-11", part="axe on every page")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.slow
def test_axe_finds_nothing(page_as: PageAs, world: World, width: int) -> None:
    page = page_as("admin", width=width)
    paths = pages(page, world)
    assert {"/tool-servers", "/budgets/ledger", "/budgets/figures", "/tenant/audit"} <= set(paths)
    for path in paths:
        page.goto(path)
        for theme in themes(page):
            photograph(page, theme, width)
            axe(page, theme)


@pytest.mark.slow
def test_nothing_scrolls_sideways_on_the_narrowest_screen(page_as: PageAs, world: World) -> None:
    page = page_as("admin", width=NARROWEST)
    for path in pages(page, world):
        page.goto(path, wait_until="domcontentloaded")
        photograph(page, "light", NARROWEST)
        no_sideways(page)


@proves("R-TOOL-4", part="by keyboard in a browser")
def test_a_tool_is_changed_without_a_pointer(page_as: PageAs, world: World) -> None:
    page = page_as("admin")
    page.goto("/tools")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(".")
    page.get_by_label("Price a call").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("0.75")
    page.get_by_label("Reason").first.focus()
    page.keyboard.type("It costs more")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("is at version 3 now.")).to_be_visible()


@proves("R-UI-6", part="compile errors in place")
def test_faults_stand_at_their_lines_and_the_text_is_kept(
    page_as: PageAs, world: World, no_messages: Messages
) -> None:
    no_messages.expect("status of 422")
    page = page_as("admin")
    page.goto("/workflows/_publish?from=tool-loop")
    area = page.get_by_label("Workflow (YAML)")
    text = area.input_value().replace("kind: act", "kind: guess", 1)
    area.fill(text)
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("nothing was published")).to_be_visible()
    expect(page.locator("[data-errors]")).to_be_focused()
    assert page.locator(".listing-wrong").count() >= 1
    assert area.input_value() == text
    photograph(page, "light", WIDE)
    axe(page)


@proves("R-SEC-2", part="shown once in a browser")
def test_a_key_is_shown_once(page_as: PageAs, world: World) -> None:
    page = page_as("admin")
    page.goto("/tenant/keys")
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Make the key").click()
    clear = page.locator("#once code").inner_text()
    assert clear.startswith("ilk_")
    photograph(page, "light", WIDE)
    axe(page)
    page.goto("/tenant/keys")
    assert clear not in page.content()
    expect(page.get_by_role("cell", name="Valid").first).to_be_visible()

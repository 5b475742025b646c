"""Pages that only a form or a link of one's own leads to are looked at as all others are (R-UI-11)."""

from __future__ import annotations

from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PageAs
from tests.browser.forms import FORMS
from tests.browser.harness import NARROW, NARROWEST, WIDE, Messages, axe, no_sideways, photograph, themes
from tests.factories.tenancy import apart
from tests.factories.world import World
from tests.proves import proves

LONG = "W" * 90 + " and a title that goes on"


def looked_at(page: Page) -> None:
    """What is open, wide and narrow, dark and light, and on the narrowest screen."""
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in themes(page):
            photograph(page, theme, width)
            axe(page, theme)
    page.set_viewport_size({"width": NARROWEST, "height": 900})
    no_sideways(page)
    page.set_viewport_size({"width": WIDE, "height": 900})


@proves("R-UI-11", part="axe on what a form draws: runs in bulk")
@pytest.mark.slow
def test_runs_in_bulk_before_and_after(page_as: PageAs, world: World) -> None:
    def submitted() -> None:
        for _ in range(2):
            world.submit("tool-loop", LONG)
        world.drive(world.submit("tool-loop", "How much is 1 + 1?"))

    apart(submitted)
    page = page_as("operator")
    page.goto("/runs")
    for box in page.locator("[data-pick]").all():
        box.check()
    page.locator("#bulk [value=cancel]").click()
    expect(page.get_by_role("heading", name="Cancel 2 runs?")).to_be_visible()
    looked_at(page)
    page.get_by_label("Why").fill("A drill")
    page.get_by_role("button", name="Cancel 2 runs").click()
    expect(page.get_by_text("Cancel asked for").first).to_be_visible()
    looked_at(page)


@proves("R-UI-11", part="axe on what a form draws: a replay")
@pytest.mark.slow
def test_a_replay(page_as: PageAs, world: World) -> None:
    run = apart(lambda: world.drive(world.submit("tool-loop", "How much is 1 + 1?")).id)
    page = page_as("auditor")
    page.goto(f"/runs/{run}?tab=raw")
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("come out the same")).to_be_visible()
    looked_at(page)


@proves("R-UI-11", part="axe on the page by which a person sets a password")
@pytest.mark.slow
def test_the_link_of_an_invited_person_and_a_page_that_is_not_for_one(
    page_as: PageAs, world: World, no_messages: Messages
) -> None:
    page, form = page_as("admin"), FORMS["person"]
    page.goto(form.page)
    # Of her own address: a person outlives the test that invites her, and is invited once.
    address = f"{uuid4().hex}@people.example"
    page.locator("#id_email").fill(address)
    page.locator("#id_name").fill(form.typed["#id_name"])
    page.get_by_role("button", name=form.button).click()
    link = page.locator("#once code").inner_text()
    invited = page_as(None)
    invited.goto(link)
    expect(invited.locator("input[type=password]").first).to_be_visible()
    expect(invited.get_by_text(f"For {address}.")).to_be_visible()
    looked_at(invited)
    no_messages.expect("status of 403")
    auditor = page_as("auditor")
    auditor.goto("/new/tool-loop")
    expect(auditor.get_by_role("heading", level=1)).to_be_visible()
    looked_at(auditor)

"""Hostile text in every field, as people see it: nothing pushes a page sideways or an action out of sight."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, Messages, no_sideways, photograph
from tests.browser.test_policy import whole
from tests.doors.pages.hostile import hostile_house
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.tenancy import apart
from tests.factories.world import World
from tests.proves import proves

pytestmark = pytest.mark.slow

# Buttons, links and fields that are drawn and of which a part stands beyond an edge that nothing scrolls to.
LOST = """() => [...document.querySelectorAll("main :is(button, a[href], input, select, textarea, summary)")]
  .filter((one) => one.checkVisibility() && !one.closest(".unseen, [aria-hidden=true]"))
  .filter((one) => { const { left, right, width } = one.getBoundingClientRect();
    return width > 1 && (left < -1 || right > innerWidth + 1) && !scrolls(one); })
  .map((one) => one.outerHTML.slice(0, 160));
  function scrolls(one) {
    for (let box = one.parentElement; box; box = box.parentElement)
      if (/auto|scroll/.test(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth)
        return true;
    return false;
  }"""


@proves("R-SEC-5", part="hostile text leaves the actions on the screen")
@pytest.mark.timeout(400)
def test_no_page_is_pushed_sideways_and_no_action_off_the_screen(
    page_as: PageAs, world: World, company: Company, superuser: psycopg.Connection[Any], no_messages: Messages
) -> None:
    page, faults = page_as("admin"), list[str]()
    for path in apart(lambda: hostile_house(world, company, superuser)):
        if not whole(page, path):
            continue
        page.goto(path, wait_until="domcontentloaded")
        for width in (WIDE, NARROW, NARROWEST):
            page.set_viewport_size({"width": width, "height": 900})
            try:
                no_sideways(page)
            except AssertionError as fault:
                faults.append(f"{width}: {fault}")
            faults += [f"{width} {path}: {one}" for one in page.evaluate(LOST)]
        photograph(page, "hostile", NARROWEST)
    assert not faults, "\n".join(faults)
    decisions_in_sight(page)


def decisions_in_sight(page: Page) -> None:
    """The card that is open has what decides it in the window, at every width."""
    for width in (WIDE, NARROW, NARROWEST):
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator("[value=approve]")).to_be_in_viewport(ratio=1)
        expect(page.locator("summary[data-key=d]")).to_be_in_viewport(ratio=1)

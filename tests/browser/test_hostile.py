"""Hostile text in every field, as people see it: nothing pushes a page sideways or an action out of sight."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from tests.browser.conftest import PageAs
from tests.browser.harness import DRAWN, NARROW, NARROWEST, WIDE, Messages, no_sideways, photograph
from tests.browser.test_policy import whole
from tests.doors.pages.hostile import TABS, hostile_house
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.doubles.desk_server import DeskServer
from tests.doubles.desk_server import desk_server as desk_server
from tests.factories.foreign import foreign, to_the_end
from tests.factories.hostile_run import Hostile, begin
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

# What is not drawn while it is out of sight keeps the width at which it was drawn last.
OPEN = """() => { for (const one of document.querySelectorAll("main details")) one.open = true;
  for (const one of document.querySelectorAll(".line")) one.style.contentVisibility = "visible"; }"""


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
        faults += at_every_width(page, path)
        open_everything(page)
        faults += at_every_width(page, f"{path} (all open)")
        photograph(page, "hostile", NARROWEST)
    assert not faults, "\n".join(faults)
    decisions_in_sight(page)


def decisions_in_sight(page: Page) -> None:
    """The card that is open has what decides it in the window, at every width."""
    for width in (WIDE, NARROW, NARROWEST):
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator("[value=approve]")).to_be_in_viewport(ratio=1)
        expect(page.locator("summary[data-key=d]")).to_be_in_viewport(ratio=1)


@proves("A9", part="what models and tools said pushes no action off the screen")
@proves("M14", part="every content of a run, opened, at every width")
@pytest.mark.timeout(400)
def test_what_was_said_in_a_run_pushes_nothing_aside_with_everything_opened(
    page_as: PageAs,
    world: World,
    desk_server: DeskServer,
    settings: Settings,
    no_messages: Messages,
) -> None:
    page, faults = page_as("admin"), list[str]()
    with foreign(settings, Hostile()):
        run = apart(lambda: begin(world, desk_server))
        (asked,) = apart(lambda: world.open_requests(run))
        waiting = f"/runs/{run}", f"/approvals?open={asked.id}", f"/approvals/{asked.id}"
        for path in waiting:
            faults += opened_at_every_width(page, path)
            decisions_in_sight(page)
        apart(lambda: to_the_end(world, run))
    pages = [f"/runs/{run}", *(f"/runs/{run}?tab={tab}" for tab in TABS)]
    page.goto(pages[0])
    rows = page.evaluate("[...document.querySelectorAll('[data-load]')].map((one) => one.dataset.load)")
    assert rows
    for path in (*pages, *rows, "/runs", waiting[-1]):
        faults += opened_at_every_width(page, path)
    assert not faults, "\n".join(faults)


def opened_at_every_width(page: Page, path: str) -> list[str]:
    """What is wrong with a page on which everything that folds is open."""
    page.set_viewport_size({"width": WIDE, "height": 900})
    page.goto(path)
    open_everything(page)
    return at_every_width(page, path)


def open_everything(page: Page) -> None:
    """Open all that folds, and what folds in what came with it."""
    page.evaluate(OPEN)
    expect(page.locator("main [data-load] .opened > a")).to_have_count(0, timeout=60_000)
    page.evaluate(OPEN)


def at_every_width(page: Page, path: str) -> list[str]:
    """Where the page is too wide, and which actions are out of reach."""
    found = []
    for width in (WIDE, NARROW, NARROWEST):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(DRAWN)
        found += [f"{width} {path}: {one}" for one in page.evaluate(LOST)]
        try:
            no_sideways(page)
        except AssertionError as fault:
            found.append(f"{width} {path}: {fault}")
    return found

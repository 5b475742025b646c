"""A real run's page while its web server dies and comes back: nothing missing, nothing twice."""

import re
from collections.abc import Callable, Iterator
from threading import Thread
from time import sleep
from uuid import UUID

import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from config.devstack.embedded import EmbeddedValkey
from tests.browser.harness import Messages, Site
from tests.conftest import House
from tests.factories.announcing import announced
from tests.factories.world import World, make_world
from tests.proves import proves

ASKED = "How much is (12 + 30) * 2?"
IDS = "[...document.querySelectorAll('#timeline-rows > .line')].map((row) => row.id)"
WORDS = "[...document.querySelectorAll('#timeline-rows .line-words')].map((row) => row.innerText)"


@pytest.fixture
def world(house: House, valkey: EmbeddedValkey) -> Iterator[World]:
    """A furnished house whose commits are announced to the site."""
    with announced(valkey):
        yield make_world(house)


def slowly(world: World, run: UUID, pause: float) -> Thread:
    """Drive a run in a thread, with a pause after each commit."""

    def breathe(point: str) -> None:
        if point == "committed":
            sleep(pause)

    def work() -> None:
        try:
            world.drive(run)
        finally:
            connection.close()

    world.worker.fault = breathe
    driving = Thread(target=work)
    driving.start()
    return driving


def opened(page: Page, run: UUID) -> Page:
    """The run's page, followed."""
    page.goto(f"/runs/{run}")
    expect(page.locator("#pill")).to_have_text("Live")
    page.mouse.move(5, 5)
    return page


def seen(page: Page) -> tuple[list[str], list[str]]:
    """Which rows the page shows, and what they say."""
    if page.locator("#live-new").count():
        page.locator("#live-new").click()
    return page.evaluate(IDS), page.evaluate(WORDS)


@proves("R-UI-3", part="live, and caught up by itself after a restart, which it says")
def test_a_killed_web_server_is_caught_up_with(
    page_as: Callable[..., Page], site: Site, world: World, no_messages: Messages
) -> None:
    no_messages.expect("WebSocket connection to")
    no_messages.expect("ERR_CONNECTION")
    run = world.submit("tool-loop", ASKED)
    page = opened(page_as("operator"), run)
    driving = slowly(world, run, 0.4)
    expect(page.locator("#timeline-rows > .line").nth(2)).to_be_visible()
    site.stop(kill=True)
    expect(page.locator("#pill")).to_have_text(re.compile("Reconnecting|Polling"))
    site.start()
    expect(page.locator("#pill")).to_have_text("Live", timeout=20_000)
    driving.join()
    expect(page.locator("#standing .chip, .chip").first).to_contain_text(re.compile("Succeeded|Completed"))
    ids, words = seen(page)
    assert len(ids) == len(set(ids))
    fresh = opened(page_as("operator"), run)
    assert (ids, words) == seen(fresh)


@proves("R-UI-2", part="the list is live")
def test_the_list_follows_a_run_from_its_beginning_to_its_end(
    page_as: Callable[..., Page], site: Site, world: World
) -> None:
    page = page_as("operator")
    world.submit("tool-loop", "An earlier one")
    page.goto("/runs")
    expect(page.locator("#pill")).to_have_text("Live")
    page.mouse.move(5, 5)
    run = world.submit("tool-loop", ASKED)
    entering, row = page.locator("#live-new"), page.locator("[data-item]").first
    expect(entering.or_(page.locator("[data-item]").nth(1)).first).to_be_visible()
    if entering.count():
        entering.click()
    expect(row).to_contain_text("Queued")
    page.mouse.move(5, 5)
    slowly(world, run, 0).join()
    expect(row).to_contain_text(re.compile("Succeeded|Completed"))

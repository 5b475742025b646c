"""From the sign-in form to a run's end, with a worker and a web server in processes of their own."""

import re
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.cache import cache
from playwright.sync_api import Page, expect

from tenancy.models import Person
from tests.browser.conftest import PageAs
from tests.browser.harness import PILL_WATCH, Messages, Site, assert_told_in_time
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, make_world
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves

pytestmark = pytest.mark.slow

PASSWORD = "a long enough password"
PATIENCE_SECONDS = 60.0
PATIENCE = PATIENCE_SECONDS * 1000
ARMED_MS = 800
ENDED = "Succeeded"
# Remembers each state that the page says. Whoever loads another document begins anew.
STATES = """
window.states = [];
new MutationObserver(() => {
  const word = document.querySelector("#run-standing .chip")?.textContent.trim();
  if (word && word !== window.states.at(-1)) window.states.push(word);
}).observe(document, { childList: true, subtree: true, characterData: true });"""
ROWS = """[...document.querySelectorAll("#timeline-rows > .line")].map(
  (row) => [row.id, row.querySelector(".line-words").innerText])"""


@pytest.fixture
def world(house: House, company: Company, site: Site, superuser: psycopg.Connection[Any]) -> Iterator[World]:
    """A furnished house whose runs only the worker's process drives."""
    cache.clear()
    Clock(superuser).park_the_rest()
    found = make_world(house)
    site.start_worker(INTERLOCK_DEMO_URL=company.url)
    yield found
    company.reset()
    site.stop_worker()


def until(holds: Callable[[], object]) -> None:
    """Wait for what happens behind the page. Raises AssertionError when it does not."""
    end = monotonic() + PATIENCE_SECONDS
    while not holds():
        assert monotonic() < end
        sleep(0.05)


def signed_in(page: Page, person: Person) -> None:
    """Sign in by the form, onto the first page."""
    person.set_password(PASSWORD)
    person.save(update_fields=["password"])
    page.goto("/")
    page.get_by_label("Email").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def rows(page: Page) -> list[list[str]]:
    """The id and the words of each row that the page has, those included that wait to be let in."""
    if page.locator("#live-new").count():
        page.locator("#live-new").click()
        page.mouse.move(5, 5)
    found: list[list[str]] = page.evaluate(ROWS)
    return found


def ids(found: list[list[str]]) -> list[str]:
    """Which rows."""
    return [name for name, _ in found]


def inbox_by_keys(page: Page, request: UUID) -> None:
    """Go to the inbox without a pointer; the request's card takes a press."""
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url("**/approvals")
    expect(page.locator("#pill")).to_have_text("Live", timeout=PATIENCE)
    expect(page.locator(f"#card-{request}")).to_be_visible()
    page.wait_for_timeout(ARMED_MS)
    expect(page.locator("[data-disarmed]")).to_have_count(0)


def kill_under(page: Page, site: Site) -> None:
    """Kill the web server under a page that is live; the page says so in time."""
    assert page.evaluate("lost") == {}
    page.evaluate("lost.noted = performance.now()")
    site.stop(kill=True)
    expect(page.locator("#pill")).to_have_text(re.compile("Reconnecting|Polling"), timeout=PATIENCE)
    assert_told_in_time(page)


@proves("R-UI-3", part="the whole road: live from the start to the end, over a web server that is killed")
@proves("R-UI-3", part="the pill says in two seconds that the real server was killed")
@proves("R-UI-10", part="a scenario starts at once, and a worker takes it")
@pytest.mark.timeout(300)
def test_a_refund_goes_from_the_sign_in_to_its_end_before_two_people_s_eyes(
    page_as: PageAs, site: Site, world: World, company: Company, no_messages: Messages
) -> None:
    no_messages.expect("WebSocket connection to")
    no_messages.expect("ERR_CONNECTION")
    company.faults("policy", "hang")
    page, reviewer = page_as(None), page_as("reviewer")
    page.add_init_script(STATES)
    page.add_init_script(PILL_WATCH)
    signed_in(page, world.people.operator.person)
    page.get_by_role("button", name="Run it: Refund a hand grinder").click()
    page.wait_for_url(re.compile("/runs/[0-9a-f-]{36}$"))
    run, born = UUID(page.url[-36:]), page.evaluate("performance.timeOrigin")
    page.mouse.move(5, 5)

    company.wait_until_held("policy", patience=PATIENCE_SECONDS)
    expect(page.locator("#pill")).to_have_text("Live", timeout=PATIENCE)
    expect(page.locator("#run-standing .chip").first).to_have_text("Running", timeout=PATIENCE)
    until(lambda: "policy.evaluate sent" in rows(page)[-1][1])
    before = rows(page)
    kill_under(page, site)
    company.faults("policy", "none")
    until(lambda: world.open_requests(run))
    assert rows(page) == before
    site.start()
    expect(page.locator("#pill")).to_have_text("Live", timeout=PATIENCE)
    expect(page.locator("#run-standing .chip").first).to_have_text("Needs approval", timeout=PATIENCE)
    caught_up = rows(page)
    assert ids(caught_up)[: len(before)] == ids(before)
    assert len(caught_up) > len(before)

    (refund,) = world.open_requests(run)
    reviewer.goto("/")
    inbox_by_keys(reviewer, refund.id)
    reviewer.keyboard.press("a")
    expect(reviewer.locator(f"#card-{refund.id} .approve [data-typed]")).to_be_focused()
    reviewer.keyboard.type("129.90")
    reviewer.keyboard.press("Control+Enter")
    until(lambda: [one.id for one in world.open_requests(run)] not in ([], [refund.id]))
    (message,) = world.open_requests(run)
    reviewer.wait_for_url("**/approvals?*done=*")
    inbox_by_keys(reviewer, message.id)
    reviewer.keyboard.press("a")

    expect(page.locator("#run-standing .chip").first).to_have_text(ENDED, timeout=PATIENCE)
    until(lambda: "Run ended" in rows(page)[-1][1])
    gathered = rows(page)
    assert page.evaluate("performance.timeOrigin") == born
    states = page.evaluate("window.states")
    assert states.index("Running") < states.index("Needs approval") < states.index(ENDED), states
    fresh = page_as("auditor")
    fresh.goto(f"/runs/{run}")
    assert gathered == rows(fresh)
    assert len(set(ids(gathered))) == len(gathered)
    assert [one["service"] for one in company.effects()] == ["payments", "mail"]
    world.sound(run)

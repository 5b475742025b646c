"""The forms of the console are filled and sent by keys alone (R-UI-11)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PageAs
from tests.browser.forms import FORMS
from tests.browser.test_keyboard import MOST, to
from tests.doors.pages.test_every_page import address, belongings
from tests.factories.tenancy import apart
from tests.factories.world import World
from tests.proves import proves

# One of each make: plain, in a fold, in a row of a table, of several forms on a page, of a schema.
OFTEN = ("key", "limits", "price", "private place", "task")


def opened(page: Page, world: World, name: str) -> None:
    """The page of a form, with what it is about."""
    form, things = FORMS[name], dict[str, str]()
    if "<" in form.page:
        things = apart(lambda: belongings(world))
    if form.before is not None:
        before = form.before
        apart(lambda: before(world))
    page.goto(address(form.page.removeprefix("/"), things))


def press(page: Page, words: str) -> None:
    """Press Tab until a button of a form with these words has the focus, and Enter."""
    for _ in range(MOST):
        page.keyboard.press("Tab")
        at = page.locator("main form button:focus")
        if at.count() and words in " ".join(at.inner_text().split()):
            page.keyboard.press("Enter")
            return
    raise AssertionError(words)


@proves("R-UI-11", part="forms are filled and sent by keys alone")
@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in FORMS]
)
def test_a_form_is_filled_and_sent_by_keys_alone(page_as: PageAs, world: World, name: str) -> None:
    form, page = FORMS[name], page_as("admin")
    opened(page, world, name)
    # What stands there already would say nothing of what was sent.
    expect(page.get_by_text(form.said)).to_have_count(0)
    for selector, text in form.typed.items():
        to(page, f"main {selector}")
        if page.locator(":focus").evaluate("one => one.matches('button')"):
            with page.expect_navigation():
                page.keyboard.type(text)
        else:
            page.keyboard.type(text)
    press(page, form.button)
    expect(page.get_by_text(form.said).first).to_be_visible()
    expect(page.locator("main [data-errors]")).to_have_count(0)

"""Reviews and proposals about tools by keys alone, with and without a script, in every state (R-UI-11)."""

from __future__ import annotations

from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PageAs
from tests.browser.harness import NARROWEST, axe, no_sideways
from tests.browser.test_keyboard import to
from tests.doors.api.doors import some_proposal, some_review
from tests.factories.tenancy import apart
from tests.factories.world import World
from tests.proves import proves


def sound(page: Page) -> None:
    """What is open is fit for everybody at both ends of the widths."""
    axe(page)
    page.set_viewport_size({"width": NARROWEST, "height": 900})
    no_sideways(page)
    page.set_viewport_size({"width": 1280, "height": 900})


def send(page: Page, button: str, *, script: bool) -> None:
    """Press a button by the keys that there are."""
    if script:
        to(page, button)
    else:
        page.locator(button).focus()
    page.keyboard.press("Enter")


@proves("R-UI-11", part="a review is taken and answered by keys alone, with and without a script")
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_review_is_taken_and_answered_by_keys_alone(page_as: PageAs, world: World, script: bool) -> None:
    def asked() -> UUID:
        return some_review(world.id, world.submit("tool-loop", "How much is 1 + 1?"))

    page = page_as("reviewer", script=script)
    page.goto(f"/reviews/{apart(asked)}")
    send(page, "[value=take]", script=script)
    expect(page.get_by_text("It is yours.")).to_be_visible()
    if script:
        sound(page)
    page.locator("[name=finding]").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.type("It is so.")
    send(page, "form.form .button.primary", script=script)
    expect(page.get_by_role("heading", name="What was found")).to_be_visible()
    if script:
        sound(page)


@proves("R-UI-11", part="a proposal is settled by keys alone, with and without a script")
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_proposal_is_refused_by_keys_alone(page_as: PageAs, world: World, script: bool) -> None:
    apart(lambda: some_proposal(world.id, "clock.now"))
    page = page_as("admin", script=script)
    page.goto("/change-requests")
    page.locator("[name=reason]").focus()
    page.keyboard.type("Not this one")
    send(page, "[name=drop]", script=script)
    expect(page.get_by_role("heading", name="Settled")).to_be_visible()
    expect(page.get_by_text("Not this one")).to_be_visible()
    if script:
        sound(page)

"""Saying in a real browser what became of changes that were in doubt when their run ended."""

from uuid import UUID

import pytest
from playwright.sync_api import expect

from orchestrator.tools.actions.private_hosts import set_places
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, axe, no_sideways, themes
from tests.browser.test_keyboard import walked
from tests.browser.test_runs import photograph
from tests.conftest import House
from tests.doubles.crm import Crm
from tests.doubles.openai_server import OpenAIServer
from tests.factories.doubts import doubts
from tests.factories.tenancy import apart
from tests.factories.world import World, make_world
from tests.journeys.doubting import in_doubt
from tests.journeys.test_open_effects import LOOKUP, adds
from tests.journeys.test_open_effects import crm as crm
from tests.journeys.test_open_effects import model as model
from tests.proves import proves


@pytest.fixture
def world(house: House) -> World:
    """A furnished house."""
    return make_world(house)


@pytest.fixture
def ended(world: World, crm: Crm, model: OpenAIServer) -> UUID:
    """A run that was cancelled while nobody knew whether its note was added; its tool can be asked."""

    def cancelled() -> UUID:
        set_places(world.id, (crm.place,), expected=None, by=None, reason="Ours.")
        adds(world, crm, recovery="lookup", lookup=LOOKUP, timeout_ms=1_500)
        crm.away = True
        return in_doubt(world, crm, model)

    # Playwright keeps an event loop in this thread.
    return apart(cancelled)


@proves("R-UI-11", part="axe on the page of effects in doubt")
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("width", [WIDE, NARROW, NARROWEST])
def test_the_page_is_whole_on_every_width_and_in_both_themes(
    page_as: PageAs, ended: UUID, width: int
) -> None:
    pages = {
        "effects": ("reviewer", f"/runs/{ended}/effects"),
        "effects-operator": ("operator", f"/runs/{ended}/effects"),
        "run-in-doubt": ("reviewer", f"/runs/{ended}"),
        "retry-in-doubt": ("operator", f"/runs/{ended}/retry"),
    }
    for name, (role, address) in pages.items():
        page = page_as(role, width=width)
        page.goto(address)
        no_sideways(page)
        for theme in themes(page):
            photograph(page, name, theme, width)
            axe(page, theme)
        assert walked(page) == []


@proves("R-UI-11", part="reconciled by keys alone")
@pytest.mark.parametrize("script", [True, False])
def test_a_reviewer_says_what_happened_by_keys_alone(
    page_as: PageAs, world: World, ended: UUID, script: bool
) -> None:
    page = page_as("reviewer", script=script)
    page.goto(f"/runs/{ended}")
    page.get_by_role("link", name="Say what happened").press("Enter")
    page.wait_for_url(f"**/runs/{ended}/effects")
    page.get_by_label("How you know").press_sequentially("I looked at the notes.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="It happened")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("is being recorded")).to_be_visible()
    world.drive(ended)
    page.reload()
    expect(page.get_by_text("It is known of every change")).to_be_visible()
    assert doubts(world, ended) == ()

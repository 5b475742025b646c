"""What a model writes, on a run's page before it is committed, and only what is committed after."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from uuid import UUID

import pytest
from django.db import connection
from playwright.sync_api import Page, expect
from pytest_django import Settings

from config.devstack.embedded import EmbeddedValkey
from tests.browser.harness import NARROW, NARROWEST, WIDE, axe, no_sideways, themes
from tests.browser.test_runs import EACH_MOTION, SHIFTS, Motion
from tests.conftest import House
from tests.factories.announcing import announced
from tests.factories.foreign import Talking, foreign, onwards
from tests.factories.world import World, make_world
from tests.proves import proves

MOST_OFFERS = 5
FIRST = "Hello there, \u202eall of <b>you</b>. "


@pytest.fixture
def world(house: House, valkey: EmbeddedValkey) -> Iterator[World]:
    """A furnished house whose commits are announced to the site."""
    with announced(valkey):
        yield make_world(house)


def driven(world: World, run: UUID) -> Thread:
    """The run on its way, in a thread."""

    def work() -> None:
        try:
            onwards(world, run)
        finally:
            connection.close()

    driving = Thread(target=work)
    driving.start()
    return driving


@proves("R-UI-3", part="model text while it is written, and only the committed text after")
@pytest.mark.parametrize(
    "width", [WIDE, *(pytest.param(width, marks=pytest.mark.slow) for width in (NARROW, NARROWEST))]
)
@EACH_MOTION
def test_words_are_seen_as_they_are_written_and_replaced_by_what_is_committed(
    page_as: Callable[..., Page], world: World, settings: Settings, width: int, motion: Motion
) -> None:
    with foreign(settings, Talking(FIRST, "Bye.")) as server:
        assert isinstance(server, Talking)
        run = world.submit("tool-loop", "Say hello")
        page = page_as("operator", width=width)
        page.emulate_media(reduced_motion=motion)
        page.goto(f"/runs/{run}?tab=messages")
        expect(page.locator("#pill")).to_have_text("Live")
        writing, voices = page.locator("#writing .writing-text"), page.locator("#voices")
        expect(writing).to_be_hidden()
        driving = driven(world, run)
        try:
            # A process that asks its first model loads the libraries for it, which takes seconds.
            expect(page.locator("#run-standing")).to_contain_text("asking a model", timeout=30_000)
            page.evaluate(SHIFTS)
            shown = "Hello there, [U+202E]all of <b>you</b>."
            expect(writing).to_have_text(shown, timeout=30_000)
            assert "Hello there" not in voices.inner_text()
            no_sideways(page)
            # Colours that are still on their way to another theme would be judged as they pass.
            for theme in themes(page) if motion == "reduce" else ():
                if folder := os.environ.get("INTERLOCK_SHOTS"):
                    page.screenshot(path=Path(folder) / f"writing-{theme}-{width}.png")
                axe(page, theme)
            assert page.evaluate("[window.shifts, window.shifted]") == [0, []]
        finally:
            server.go.set()
            driving.join()
    said, more = voices.locator(".voice-agent").first, page.locator("#live-new")
    # What was sent to the model may be offered before what it answered.
    for _ in range(MOST_OFFERS):
        expect(said.or_(more).first).to_be_visible()
        if said.count():
            break
        more.click()
    expect(said).to_contain_text(re.compile("Bye"))
    # What is committed of a hostile text is escaped and made visible as it was while it was written.
    expect(said).to_contain_text("U+202Eall of <b>you</b>")
    expect(writing).to_be_hidden()
    expect(writing).to_have_text("")
    assert page.locator("#polite, #assertive").all_inner_texts() != []
    assert "Hello there" not in " ".join(page.locator("#polite, #assertive").all_inner_texts())


def test_without_a_script_there_is_no_place_for_words_that_cannot_come(
    page_as: Callable[..., Page], world: World
) -> None:
    run = world.submit("tool-loop", "How much is 1 + 1?")
    page = page_as("operator", script=False)
    page.goto(f"/runs/{run}")
    expect(page.locator("#run-standing")).to_be_visible()
    expect(page.locator("#writing")).to_be_hidden()

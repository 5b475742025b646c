"""The shell in a browser: signing in, keys, palette, theme, and what axe says (R-UI-11, R-SEC-2)."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, axe, no_sideways

PAGES = ("/styleguide", "/preferences", "/account/sessions/", "/account/2fa/")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_axe_finds_nothing_on_the_shell_s_pages(page_as: PageAs, theme: str, width: int) -> None:
    page = page_as("admin", width=width, theme=theme)
    for path in PAGES:
        page.goto(path)
        if os.environ.get("SHOTS"):
            page.screenshot(
                path=f"/tmp/s-shots/{path.strip('/').replace('/', '-')}-{theme}-{width}.png", full_page=True
            )
        axe(page)
    stranger = page_as(None, width=width, theme=theme)
    stranger.goto("/account/login/")
    if os.environ.get("SHOTS"):
        stranger.screenshot(path=f"/tmp/s-shots/login-{theme}-{width}.png", full_page=True)
    axe(stranger)


def test_no_page_of_the_shell_scrolls_sideways(page_as: PageAs) -> None:
    page = page_as("admin", width=NARROWEST)
    for path in PAGES:
        page.goto(path)
        if os.environ.get("SHOTS"):
            page.screenshot(path=f"/tmp/s-shots/{path.strip('/').replace('/', '-')}-320.png", full_page=True)
        no_sideways(page)
    expect(page.locator("h1")).to_be_visible()

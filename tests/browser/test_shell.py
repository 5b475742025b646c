"""The shell in a browser: keys, palette, theme, forms, and what axe says (R-UI-11)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.conftest import PageAs
from tests.browser.harness import (
    NARROW,
    NARROWEST,
    WIDE,
    Messages,
    axe,
    no_sideways,
    photograph,
    themes,
)  # fmt: skip
from tests.proves import proves

PAGES = (
    "/styleguide", "/preferences", "/account/sessions/", "/account/2fa/", "/account/logout/", "/account/sso/",
    "/tenant/queues",
)  # fmt: skip
# What somebody sees who is not in; the answers of a provider that kept them out, too.
BEFORE = (
    "/account/login/", "/account/signup/", "/nowhere", "/account/sso/login/error/",
    "/account/sso/login/cancelled/",
)  # fmt: skip


@proves("R-UI-11", part="axe and the six states of a region")
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.slow
def test_axe_finds_nothing_on_the_shell_s_pages(page_as: PageAs, width: int) -> None:
    page = page_as("admin", width=width)
    for path in PAGES:
        page.goto(path)
        for theme in themes(page):
            photograph(page, theme, width)
            axe(page, theme)
    for state in ("First use", "Empty by filter", "Loading", "Error", "Stale", "No permission"):
        page.goto("/styleguide")
        expect(page.get_by_role("heading", name=state, exact=True)).to_be_visible()


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.slow
def test_axe_finds_nothing_before_signing_in(page_as: PageAs, width: int, no_messages: Messages) -> None:
    no_messages.expect("status of 404")
    no_messages.expect("status of 401")
    page = page_as(None, width=width)
    for path in BEFORE:
        page.goto(path)
        for theme in themes(page):
            photograph(page, theme, width)
            axe(page, theme)


def test_no_page_of_the_shell_scrolls_sideways(page_as: PageAs) -> None:
    page = page_as("admin", width=NARROWEST)
    for path in PAGES:
        page.goto(path)
        photograph(page, "light", NARROWEST)
        no_sideways(page)


def listed(page: Page) -> list[str]:
    """The keys the sheet names."""
    page.keyboard.press("?")
    expect(page.locator("#sheet")).to_be_visible()
    keys: list[str] = page.locator("#sheet [data-keys]").evaluate_all(
        "rows => rows.map(row => row.dataset.keys)"
    )
    page.keyboard.press("Escape")
    expect(page.locator("#sheet")).to_be_hidden()
    return keys


@proves("R-UI-11", part="the sheet lists exactly what is bound")
def test_the_sheet_lists_exactly_the_bound_keys(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/styleguide")
    marked = set(page.locator("[data-key]").evaluate_all("all => all.map(one => one.dataset.key)"))
    in_lists = {"j", "k", "ArrowDown", "ArrowUp", "o"}
    assert set(listed(page)) == marked | in_lists | {"Control+k", "Escape", "/"}
    assert len(listed(page)) == len(set(listed(page)))


@pytest.mark.parametrize(("keys", "path"), [("g r", "/runs"), ("g a", "/approvals")])
def test_two_keys_go_places(page_as: PageAs, keys: str, path: str) -> None:
    page = page_as("reviewer")
    page.goto("/styleguide")
    for key in keys.split():
        page.keyboard.press(key)
    page.wait_for_url(f"**{path}")


def test_keys_open_a_dialog_and_rest_in_it_and_in_fields(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/styleguide")
    page.locator("#guide-filter").focus()
    page.keyboard.type("d?")
    expect(page.locator("#guide-dialog")).to_be_hidden()
    expect(page.locator("#guide-filter")).to_have_value("d?")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect(page.locator("#guide-dialog")).to_be_visible()
    expect(page.get_by_role("button", name="Keep it running")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#sheet")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#guide-dialog")).to_be_hidden()


def test_single_keys_can_be_switched_off(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/preferences")
    page.get_by_label("Single-key shortcuts").select_option("off")
    page.get_by_role("button", name="Save").click()
    page.goto("/styleguide")
    page.keyboard.press("d")
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_visible()


def test_a_list_is_walked_by_keys(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/styleguide")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("[data-item][data-at]")).to_contain_text("Brief on heat pumps")
    page.keyboard.press("k")
    expect(page.get_by_role("link", name="Refund order 4411")).to_be_focused()


def test_the_palette_knows_pages_and_the_actions_of_this_page(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/styleguide")
    page.keyboard.press("Control+k")
    page.locator("#palette-input").fill("sample dialog")
    page.keyboard.press("Enter")
    expect(page.locator("#guide-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Search and commands").click()
    page.locator("#palette-input").fill("session")
    axe(page)
    page.keyboard.press("Enter")
    page.wait_for_url("**/account/sessions/")


def test_the_theme_changes_at_once_and_is_kept(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/styleguide")
    page.get_by_label("Your menu").click()
    with page.expect_response("**/preferences"):
        page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(14, 17, 22)")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_without_a_script_theme_menu_and_pages_work(page_as: PageAs) -> None:
    page = page_as("reviewer", script=False)
    page.goto("/styleguide")
    page.get_by_label("Your menu").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page).to_have_url(f"{page.url.partition('/styleguide')[0]}/styleguide")
    assert "Scripts are off" in page.content()


def test_times_are_relative_with_the_absolute_beside(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/styleguide")
    shown = page.locator("time").first
    expect(shown).to_have_text("4 min ago")
    assert "UTC" in (shown.get_attribute("title") or "")


def test_the_first_stop_of_the_tab_key_skips_to_the_content(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/preferences")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_a_form_that_was_typed_in_is_not_left_unasked(page_as: PageAs) -> None:
    page = page_as("reviewer")
    page.goto("/preferences")
    page.locator("select#theme").select_option("dark")
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    page.goto("/styleguide")
    assert asked == ["beforeunload"]

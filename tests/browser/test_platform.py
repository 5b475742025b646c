"""The platform's pages in a browser: filled by keys alone, and held against axe (R-SEC-10, R-UI-11)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.harness import NARROW, NARROWEST, WIDE, Visitors, axe, no_sideways, photograph, themes
from tests.browser.test_forms_by_keys import press
from tests.browser.test_keyboard import to, walked
from tests.conftest import House
from tests.factories.platform import Platform, make_platform_admin
from tests.factories.tenancy import apart
from tests.proves import proves
from tests.servers import TestServers


@pytest.fixture
def platform(house: House, servers: TestServers) -> Platform:
    """A platform administrator who is in no tenant."""
    return apart(lambda: make_platform_admin(servers))


def typed_in(page: Page, words: dict[str, str]) -> None:
    """Come to each place by the Tab key and type."""
    for selector, text in words.items():
        to(page, f"main {selector}")
        page.keyboard.type(text)


@proves("R-SEC-10", part="by keys alone")
@proves("R-UI-11", part="the platform's forms are filled and sent by keys alone")
@pytest.mark.timeout(200)
def test_tenant_is_opened_changed_suspended_and_resumed_by_keys_alone(
    visitors: Visitors, platform: Platform, house: House
) -> None:
    page, slug = visitors.page(platform.person), f"acme-{str(platform.person.id)[-12:]}"
    page.goto("/")
    expect(page).to_have_url("/platform/tenants")
    words = {
        "#id_name": "Acme", "#id_slug": slug, "#id_time_zone": "Europe/Zurich", "#id_tier": "trial",
        "#id_highest_autonomy_tier": "4", "#id_administrator_name": "Ada",
        "#id_administrator": f"ada@{slug}.example",
    }  # fmt: skip
    typed_in(page, words)
    press(page, "Open the tenant")
    expect(page.get_by_text("It is shown this once").first).to_be_visible()
    page.goto(f"/platform/tenants/{slug}")
    expect(page.locator("#id_time_zone")).to_have_value("Europe/Zurich")
    expect(page.locator("#id_highest_autonomy_tier")).to_have_value("4")
    typed_in(page, {"#id_highest_autonomy_tier": "3", "#id_reason": "Asked for"})
    press(page, "Change the tenant")
    expect(page.get_by_text("The tenant is changed.").first).to_be_visible()
    typed_in(page, {"#id_administrator_name": "Ada"})
    press(page, "Invite the administrator")
    expect(page.get_by_text("It is shown this once").first).to_be_visible()
    page.goto(f"/platform/tenants/{slug}/suspend")
    expect(page.get_by_text("No run is under way")).to_be_visible()
    typed_in(page, {"#id_reason": "Unpaid"})
    press(page, "Suspend the tenant")
    expect(page.get_by_text("is suspended; 0 runs pause").first).to_be_visible()
    typed_in(page, {"#why": "Paid"})
    press(page, "Resume the tenant")
    expect(page.get_by_text("is open again").first).to_be_visible()


@proves("R-UI-11", part="axe and the Tab key on the platform's pages")
@pytest.mark.timeout(300)
@pytest.mark.slow
def test_axe_and_the_tab_key_find_nothing_on_the_platforms_pages(
    visitors: Visitors, platform: Platform, house: House
) -> None:
    here = f"/platform/tenants/{house.tenant.slug}"
    paths = ("/platform/tenants", here, f"{here}/suspend", "/platform/log")
    for width in (WIDE, NARROW, NARROWEST):
        page = visitors.page(platform.person, width=width)
        for path in paths:
            page.goto(path)
            no_sideways(page)
            for theme in themes(page):
                axe(page, theme)
                photograph(page, theme, width)
            if width == WIDE:
                assert walked(page) == [], path

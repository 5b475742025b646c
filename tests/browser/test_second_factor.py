"""The second factor asked for again in a browser: by keys, by a passkey, beside a card (R-SEC-11)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as HOW
from playwright.sync_api import Page, expect

from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import Area
from tenancy.models import FailedSignIn
from tenancy.web.session_store import SessionStore
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, Messages, axe, no_sideways, photograph, themes
from tests.browser.test_inbox import at_the_gate, opened, outcome
from tests.browser.test_inbox import world as world
from tests.browser.test_keyboard import to
from tests.browser.test_sign_in import PASSWORD, by_password, confirmed, now, with_authenticator
from tests.conftest import House
from tests.factories.second_factor import code_now, enrol, set_rules
from tests.factories.world import World
from tests.proves import proves

ASKED = "Show your second factor"


@pytest.fixture(autouse=True)
def forgotten(house: House, no_messages: Messages) -> None:
    """Attempts of other tests count for nothing; a form that is asked about is answered with 403."""
    FailedSignIn.objects.all().delete()
    no_messages.expect("status of 403")


def looked_at(page: Page) -> None:
    """What is open is fit for everybody, wide and narrow, dark and light."""
    for width in (WIDE, NARROW, NARROWEST):
        page.set_viewport_size({"width": width, "height": 900})
        no_sideways(page)
        for theme in themes(page):
            photograph(page, theme, width)
            axe(page, theme)
    page.set_viewport_size({"width": WIDE, "height": 900})


def give_code(page: Page, done: Any) -> None:
    """Type the code of this half minute and send it by keys; it is refused only once its time is over."""
    while True:
        counter = now()
        to(page, "#second-factor-code")
        page.keyboard.type(code_now())
        page.keyboard.press("Enter")
        expect(done.or_(page.get_by_role("alert")).first).to_be_visible()
        if done.count():
            return
        assert now() != counter


@proves("R-SEC-11", part="the second factor asked for again, in a browser with a real code")
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_key_is_made_by_what_was_typed_once_the_code_is_given(
    page_as: PageAs, house: House, script: bool
) -> None:
    set_rules(house.tenant.id, areas=[Area.KEYS])
    enrol(house.people.admin.person)
    page = page_as("admin", script=script)
    page.goto("/tenant/keys")
    page.locator("#id_label").fill("typed once")
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_role("heading", name=ASKED)).to_be_visible()
    if script:
        looked_at(page)
    page.locator("#second-factor-code").fill("000000")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("The code is not right")).to_be_visible()
    if script:
        looked_at(page)
        give_code(page, page.locator("#once"))
    else:
        counter = now()
        page.locator("#second-factor-code").fill(code_now())
        page.get_by_role("button", name="Go on").click()
        while page.get_by_role("alert").count() and now() != counter:
            counter = now()
            page.locator("#second-factor-code").fill(code_now())
            page.get_by_role("button", name="Go on").click()
    expect(page.locator("#once")).to_contain_text("typed once")
    expect(page.locator("#once")).to_contain_text("shown this once")


@proves("R-SEC-11", part="a passkey is the second factor that is asked for again")
def test_a_key_is_made_once_the_passkey_is_used(page_as: PageAs, house: House) -> None:
    person = house.people.admin.person
    person.set_password(PASSWORD)
    person.save(update_fields=["password"])
    page = page_as(None)
    by_password(page, person)
    with_authenticator(page)
    confirmed(page, "/account/2fa/webauthn/add/")
    page.get_by_label("Name").fill("Laptop")
    page.get_by_role("button", name="Add").click()
    page.wait_for_url("**/recovery-codes/**")
    set_rules(house.tenant.id, areas=[Area.KEYS])
    cookie = next(one for one in page.context.cookies() if one["name"] == "sessionid")
    session: Any = SessionStore(cookie["value"])
    # Whoever has just set it up has shown it; that was long ago.
    assert [one["method"] for one in session[HOW]][-1] == "mfa"
    session[HOW] = [{**one, "at": one["at"] - timedelta(hours=1).total_seconds()} for one in session[HOW]]
    session.save()
    page.goto("/tenant/keys")
    page.locator("#id_label").fill("by passkey")
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_role("heading", name=ASKED)).to_be_visible()
    looked_at(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.locator("#once")).to_contain_text("by passkey")


@proves("R-SEC-11", part="a yes by script asks for the second factor and keeps what was typed")
def test_a_yes_on_a_card_counts_once_the_code_is_given(page_as: PageAs, world: World) -> None:
    request = at_the_gate(world)
    set_rules(world.id, areas=[Area.MONEY])
    enrol(world.people.approver.person)
    page = page_as("reviewer")
    page = opened(page, f"/approvals/{request.id}")
    page.locator(".approve [data-typed]").fill("129.90")
    page.locator("[value=approve]").click()
    expect(page.get_by_role("heading", name=ASKED)).to_be_visible()
    assert outcome(world.house, request) == ("pending", "")
    give_code(page, page.get_by_text("Approved."))
    assert outcome(world.house, request) == ("decided", "approve")


@proves("R-SEC-11", part="whoever has no second factor is led to set one up")
def test_whoever_has_no_factor_is_led_to_set_one_up(page_as: PageAs, house: House) -> None:
    page = page_as("admin")
    set_rules(house.tenant.id, areas=[Area.KEYS])
    page.goto("/tenant/keys")
    page.locator("#id_label").fill("kept")
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_role("heading", name="Set up a second factor")).to_be_visible()
    looked_at(page)
    set_rules(house.tenant.id, roles=[Role.ADMIN])
    page.goto("/runs")
    expect(page.get_by_text("In this tenant your role needs a second factor")).to_be_visible()
    expect(page.get_by_role("navigation", name="Main").get_by_role("link")).to_have_count(0)
    looked_at(page)
    page.get_by_role("link", name="Set up a second factor").click()
    page.wait_for_url("**/account/2fa/")


def test_the_rules_are_shown_and_warn_before_one_keeps_oneself_out(
    page_as: PageAs, house: House, no_messages: Messages
) -> None:
    no_messages.expect("status of 409")
    page = page_as("admin")
    page.goto("/tenant/sign-ins")
    page.get_by_role("link", name="Sign-in rules").click()
    looked_at(page)
    page.get_by_label("admin", exact=True).check()
    page.locator("#id_reason").fill("We got bigger")
    with page.expect_navigation():
        page.get_by_role("button", name="Set the rules").click()
    expect(page.get_by_text("You have no second factor yet")).to_be_visible()
    looked_at(page)

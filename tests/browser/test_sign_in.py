"""Signing in as a person does it: password, codes, a passkey, and without a script (R-SEC-2)."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import hotp_value, yield_hotp_counters_from_time
from django.core.cache import cache
from playwright.sync_api import Page, expect

from tenancy.models import Person
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROWEST, WIDE, Messages, axe, no_sideways, photograph
from tests.browser.test_shell import BEFORE as DOORS
from tests.conftest import House
from tests.proves import proves

PASSWORD = "a long enough password"


@pytest.fixture
def person(house: House) -> Person:
    """Somebody with a password, and nobody's attempts counted."""
    cache.clear()
    found = house.people.approver.person
    found.set_password(PASSWORD)
    found.save(update_fields=["password"])
    return found


def by_password(page: Page, person: Person) -> None:
    """Fill the sign-in form; afterwards the style guide."""
    page.goto("/account/login/?next=/styleguide")
    page.get_by_label("Email").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: "/account/login/" not in url)


def confirmed(page: Page, path: str) -> None:
    """Go where the password is asked for once more, and give it."""
    page.goto(path)
    axe(page)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url(f"**{path}")
    axe(page)


@proves("R-SEC-2", part="people: without a script")
@pytest.mark.parametrize("script", [True, False])
def test_a_person_signs_in_and_out_by_password(page_as: PageAs, person: Person, script: bool) -> None:
    page = page_as(None, script=script)
    by_password(page, person)
    page.wait_for_url("**/styleguide")
    page.get_by_label("Your menu").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/account/login/")
    page.goto("/styleguide")
    page.wait_for_url("**/account/login/?next=/styleguide")


def test_a_wrong_password_is_said_above_the_form(page_as: PageAs, person: Person) -> None:
    page = page_as(None)
    page.goto("/account/login/")
    page.get_by_label("Email").fill(person.email)
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="do not belong together")).to_be_focused()
    axe(page)


def activated(page: Page) -> bool:
    """Give the code of this half minute; whether it was taken. It is refused only once its time is over."""
    secret, counter = page.get_by_label("Authenticator secret").input_value(), now()
    page.get_by_label("Authenticator code").fill(f"{hotp_value(secret, counter):06d}")
    page.get_by_role("button", name="Activate").click()
    taken = page.locator("#recovery_codes")
    expect(taken.or_(page.get_by_role("alert")).first).to_be_visible()
    assert taken.count() or now() != counter
    return bool(taken.count())


def now() -> int:
    """Which half minute it is."""
    counter: int = next(yield_hotp_counters_from_time())
    return counter


@proves("R-SEC-2", part="people: codes and recovery codes")
def test_a_person_sets_up_codes_and_signs_in_by_one_and_by_a_recovery_code(
    page_as: PageAs, person: Person
) -> None:
    page = page_as(None)
    by_password(page, person)
    confirmed(page, "/account/2fa/totp/activate/")
    photograph(page, "light", WIDE)
    # The half minute of a code may be over before it is sent.
    while not activated(page):
        pass
    page.wait_for_url("**/recovery-codes/")
    axe(page)
    codes = page.locator("#recovery_codes").inner_text().split()
    page.goto("/account/2fa/")
    axe(page)
    other = page_as(None)
    by_password(other, person)
    other.wait_for_url("**/2fa/authenticate/**")
    axe(other)
    other.get_by_label("Code").fill(codes[0])
    other.get_by_role("button", name="Sign in").click()
    other.wait_for_url("**/styleguide")


def test_the_doors_fit_the_narrowest_screen(page_as: PageAs, no_messages: Messages) -> None:
    no_messages.expect("status of 404")
    no_messages.expect("status of 401")
    page = page_as(None, width=NARROWEST)
    for path in DOORS:
        page.goto(path)
        no_sideways(page)


AUTHENTICATOR = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


def with_authenticator(page: Page, credentials: list[dict[str, Any]] | None = None) -> Any:
    """A virtual authenticator in a page's browser; gives the session and its id."""
    wire = page.context.new_cdp_session(page)
    wire.send("WebAuthn.enable")
    made = wire.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})["authenticatorId"]
    for credential in credentials or []:
        wire.send("WebAuthn.addCredential", {"authenticatorId": made, "credential": credential})
    return wire, made


@proves("R-SEC-2", part="people: passkeys")
def test_a_passkey_is_added_and_then_is_enough(page_as: PageAs, person: Person) -> None:
    page = page_as(None)
    by_password(page, person)
    wire, made = with_authenticator(page)
    confirmed(page, "/account/2fa/webauthn/add/")
    photograph(page, "light", WIDE)
    page.get_by_label("Name").fill("Laptop")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    page.wait_for_url("**/recovery-codes/**")
    page.goto("/account/2fa/webauthn/")
    expect(page.get_by_text("Laptop")).to_be_visible()
    axe(page)
    credentials = wire.send("WebAuthn.getCredentials", {"authenticatorId": made})["credentials"]
    fresh = page_as(None)
    fresh.goto("/account/login/?next=/styleguide")
    with_authenticator(fresh, credentials)
    fresh.get_by_role("button", name="Sign in with a passkey").click()
    fresh.wait_for_url("**/styleguide")


def test_a_passkey_that_is_not_known_is_said_on_the_page(page_as: PageAs, house: House) -> None:
    page = page_as(None)
    page.goto("/account/login/")
    with_authenticator(page)
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("passkey was not used")

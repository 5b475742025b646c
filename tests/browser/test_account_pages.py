"""Every page of a person's account, those included that only a half of signing in leads to (R-UI-11)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.urls import URLPattern, URLResolver, get_resolver
from playwright.sync_api import Page, expect

from tenancy.models import Person
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, Messages, axe, no_sideways, photograph, themes
from tests.browser.test_sign_in import PASSWORD, by_password, with_authenticator
from tests.browser.test_sign_in import person as person
from tests.proves import proves

SECRET = "JBSWY3DPEHPK3PXP"
BEFORE = (
    "password/change/", "reauthenticate/", "2fa/totp/activate/", "2fa/webauthn/add/", "sessions/", "sso/",
    "logout/", "inactive/",
)  # fmt: skip
AFTER = (
    "2fa/", "2fa/totp/deactivate/", "2fa/recovery-codes/", "2fa/recovery-codes/generate/",
    "2fa/webauthn/", "2fa/reauthenticate/", "2fa/webauthn/reauthenticate/",
)  # fmt: skip
OF_A_KEY = ("2fa/webauthn/keys/<int:pk>/edit/", "2fa/webauthn/keys/<int:pk>/remove/")
HALF = "2fa/authenticate/"
# For who has no password, which is who came by a provider alone.
OF_NOBODY = ("password/set/",)
LONG = "A key whose name goes on and on " + "W" * 40
# Looked at elsewhere (`BEFORE` of test_shell, test_drawn_by_forms); another's page (the provider's); no page
# (a file, a script's answer, the target of a form); a page that needs the provider to have begun.
ELSEWHERE = frozenset(
    {
        "login/", "signup/", "sso/login/error/", "sso/login/cancelled/", "password/reset/key/done/",
        "^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$", "oidc/<str:provider_id>/login/",
        "oidc/<str:provider_id>/login/callback/", "2fa/recovery-codes/download/", "2fa/webauthn/login/",
        "sso/signup/", "sessions/<uuid:session_id>/end", "devices/<uuid:device_id>/forget",
    }
)  # fmt: skip


def looked_at(page: Page) -> None:
    """What is open, wide and narrow, dark and light, and on the narrowest screen."""
    for width in (WIDE, NARROW, NARROWEST):
        page.set_viewport_size({"width": width, "height": 900})
        no_sideways(page)
        for theme in themes(page):
            photograph(page, theme, width)
            if width != NARROWEST:
                axe(page, theme)
    page.set_viewport_size({"width": WIDE, "height": 900})


def opened(page: Page, path: str) -> None:
    """A page of the account; the password is given where it is asked for once more."""
    page.goto(f"/account/{path}")
    if "reauthenticate" in page.url and "reauthenticate" not in path:
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()
    page.wait_for_url(f"**/account/{path}")
    expect(page.locator("h1")).to_have_count(1)


def a_key_of(page: Page, person: Person) -> Authenticator:
    """A passkey of a person's, added on its page."""
    with_authenticator(page)
    opened(page, "2fa/webauthn/add/")
    page.get_by_label("Name").fill(LONG)
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    page.wait_for_url(lambda url: "/add/" not in url)
    return Authenticator.objects.get(user=person, type="webauthn")


def routes(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    """Every address below the one of accounts."""
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        elif route.startswith("account/"):
            yield route.removeprefix("account/")


def test_every_page_of_an_account_is_looked_at() -> None:
    known = {*BEFORE, *AFTER, *OF_A_KEY, *OF_NOBODY, HALF, *ELSEWHERE}
    assert sorted(known ^ set(routes(get_resolver().url_patterns))) == []


@proves("R-UI-11", part="axe on the pages of an account")
@pytest.mark.timeout(400)
@pytest.mark.slow
def test_axe_finds_nothing_on_the_pages_of_an_account(
    page_as: PageAs, person: Person, no_messages: Messages
) -> None:
    SocialAccount.objects.create(
        user=person, provider="sso", uid=str(person.id),
        extra_data={"iss": "https://people.example", "email": person.email},
    )  # fmt: skip
    page = page_as(None)
    by_password(page, person)
    for path in BEFORE:
        opened(page, path)
        looked_at(page)
    TOTP.activate(person, SECRET)
    RecoveryCodes.activate(person)
    key = a_key_of(page, person)
    for path in (*AFTER, *(one.replace("<int:pk>", str(key.id)) for one in OF_A_KEY)):
        opened(page, path)
        looked_at(page)
    expect(page.locator("h1")).to_contain_text("A key whose name")
    page.get_by_role("button", name="Remove the passkey").click()
    expect(page.get_by_text("No passkey yet")).to_be_visible()
    person.set_unusable_password()
    person.save(update_fields=["password"])
    page = page_as("reviewer")
    opened(page, *OF_NOBODY)
    looked_at(page)


@proves("R-UI-11", part="axe on the second half of signing in, and on what is wrong with a code")
@pytest.mark.timeout(200)
@pytest.mark.slow
def test_axe_finds_nothing_on_the_question_for_a_code(page_as: PageAs, person: Person) -> None:
    TOTP.activate(person, SECRET)
    page = page_as(None)
    by_password(page, person)
    page.wait_for_url(f"**/account/{HALF}**")
    looked_at(page)
    page.get_by_label("Code").fill("000000")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    looked_at(page)

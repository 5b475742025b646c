"""People prove themselves by password and second factor; guessing does not pay (R-SEC-2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    TOTP,
    generate_totp_secret,
    hotp_value,
)
from django.test import Client, override_settings

from tenancy.core import demo_users
from tenancy.core.demo_users import CAST
from tenancy.models import FailedSignIn, Person
from tenancy.web.session_store import SessionStore
from tests.conftest import House
from tests.proves import proves

PASSWORD = "a long enough password"
HTML = {"accept": "text/html"}
IN = "/account/login/"


@pytest.fixture(autouse=True)
def forgotten(house: House) -> Iterator[None]:
    """Attempts are counted by address, and all tests come from one."""
    FailedSignIn.objects.all().delete()
    yield
    FailedSignIn.objects.all().delete()


@pytest.fixture
def person(house: House) -> Person:
    """Somebody with a password."""
    found = house.people.approver.person
    found.set_password(PASSWORD)
    found.save(update_fields=["password"])
    return found


def sign_in(client: Client, email: str, password: str, **more: str) -> tuple[int, str]:
    """Status and text of an attempt."""
    answer = client.post(IN, {"login": email, "password": password, **more}, headers=HTML)
    return answer.status_code, answer.content.decode()


def signed_in(client: Client) -> bool:
    """Whether the client is somebody now."""
    return client.get("/styleguide", headers=HTML).status_code == 200


@proves("R-SEC-2", part="people: a password and a session")
@proves("R-SEC-5", part="the session's cookie is not for scripts, nor for other sites")
def test_a_password_opens_a_session_that_scripts_cannot_read(person: Person) -> None:
    client = Client()
    assert sign_in(client, person.email.upper(), PASSWORD)[0] == 302
    cookie = client.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert signed_in(client)
    assert SessionStore().exists(cookie.value)


def test_after_signing_in_one_is_where_one_wanted_to_be(person: Person) -> None:
    client = Client()
    sent = client.get("/styleguide?a=1", headers=HTML)
    assert sent.headers["Location"] == "/account/login/?next=/styleguide%3Fa%3D1"
    answer = client.post(
        sent.headers["Location"], {"login": person.email, "password": PASSWORD}, headers=HTML
    )
    assert answer.headers["Location"] == "/styleguide?a=1"


def test_next_never_leads_to_another_site(person: Person) -> None:
    answer = Client().post(f"{IN}?next=https://evil.example/", {"login": person.email, "password": PASSWORD})
    assert answer.headers["Location"] == "/"


@proves("R-SEC-2", part="people: who is switched off is out at once")
def test_who_is_switched_off_loses_the_running_session(person: Person) -> None:
    client = Client()
    sign_in(client, person.email, PASSWORD)
    Person.objects.filter(id=person.id).update(is_active=False)
    assert not signed_in(client)


@proves("W5", part="enumeration")
def test_a_stranger_s_address_and_a_wrong_password_are_answered_alike(person: Person) -> None:
    wrong = sign_in(Client(), person.email, "not the password")
    unknown = sign_in(Client(), "nobody@people.example", "not the password")
    assert wrong[0] == unknown[0] == 200
    assert "do not belong together" in wrong[1]
    assert "do not belong together" in unknown[1]


@proves("R-SEC-2", part="people: brute force")
def test_after_five_wrong_passwords_the_right_one_waits_too(person: Person) -> None:
    for _ in range(5):
        sign_in(Client(), person.email, "not the password")
    status, text = sign_in(Client(), person.email, PASSWORD)
    assert status != 302
    assert "Wait 5 minutes" in text
    assert person.email not in text.replace(f'value="{person.email}"', "")


@proves("R-SEC-2", part="people: brute force from one address")
def test_whoever_guesses_thirty_names_from_one_address_is_told_to_wait(house: House) -> None:
    for number in range(30):
        assert sign_in(Client(), f"nobody{number}@people.example", "x")[0] == 200
    answer = Client().post(IN, {"login": "nobody@people.example", "password": "x"}, headers=HTML)
    assert answer.status_code == 429
    assert 60 <= int(answer.headers["Retry-After"]) <= 300
    assert "5 minutes" in answer.content.decode()


def test_nobody_makes_an_account_for_themselves(house: House) -> None:
    answer = Client().post(
        "/account/signup/", {"email": "new@people.example", "password1": PASSWORD}, headers=HTML
    )
    assert "made by administrators" in answer.content.decode()
    assert not Person.objects.filter(email="new@people.example").exists()


@pytest.mark.parametrize("path", ["password/reset/", "email/", "confirm-email/"])
def test_what_would_need_mail_is_not_there(house: House, path: str) -> None:
    assert Client().get(f"/account/{path}", headers=HTML).status_code == 404


@proves("R-SEC-2", part="people: second factor")
def test_with_a_second_factor_the_password_alone_is_not_enough(person: Person, code_counter: int) -> None:
    secret = generate_totp_secret()
    TOTP.activate(person, secret)
    client = Client()
    answer = client.post(IN, {"login": person.email, "password": PASSWORD}, headers=HTML)
    assert answer.headers["Location"].startswith("/account/2fa/authenticate/")
    assert not signed_in(client)
    client.post("/account/2fa/authenticate/", {"code": "000000"}, headers=HTML)
    assert not signed_in(client)
    code = f"{hotp_value(secret, code_counter):06d}"
    client.post("/account/2fa/authenticate/", {"code": code}, headers=HTML)
    assert signed_in(client)


@proves("R-SEC-4", part="second factors")
def test_what_codes_are_made_from_is_not_in_the_database(person: Person) -> None:
    secret = generate_totp_secret()
    TOTP.activate(person, secret)
    stored = Authenticator.objects.get(user=person, type="totp").data["secret"]
    assert secret not in stored
    assert get_adapter().decrypt(stored) == secret


def test_changing_the_password_asks_for_the_old_one_and_for_a_good_one(person: Person) -> None:
    client = Client()
    sign_in(client, person.email, PASSWORD)
    bad = {"oldpassword": PASSWORD, "password1": "password123", "password2": "password123"}
    assert "too common" in client.post("/account/password/change/", bad, headers=HTML).content.decode()
    person.refresh_from_db()
    assert person.check_password(PASSWORD)


SSO = {
    "openid_connect": {
        "APPS": [
            {
                "provider_id": "sso", "name": "Contoso sign-on", "client_id": "interlock", "secret": "s",
                "settings": {"server_url": "https://id.contoso.example"},
            }
        ]
    }
}  # fmt: skip


def test_a_configured_provider_of_identities_is_offered(house: House) -> None:
    assert "Contoso" not in Client().get(IN, headers=HTML).content.decode()
    with override_settings(SOCIALACCOUNT_PROVIDERS=SSO):
        assert "Contoso sign-on" in Client().get(IN, headers=HTML).content.decode()


def test_signing_out_needs_a_form_and_ends_the_session(person: Person) -> None:
    client = Client()
    sign_in(client, person.email, PASSWORD)
    client.get("/account/logout/", headers=HTML)
    assert signed_in(client)
    client.post("/account/logout/", headers=HTML)
    assert not signed_in(client)


def test_sign_in_page_offers_the_demonstration_where_there_is_one(house: House) -> None:
    assert "demo.example" not in Client().get(IN).content.decode()
    with override_settings(INTERLOCK_DEMO_ACCOUNTS=True):
        page = Client().get(IN).content.decode()
    offered = re.findall(r"<li><code>([^<]+)</code>", page)
    assert offered == [f"{title}@demo.example" for title, _role, _queues in CAST]
    assert f"<code>{demo_users.PASSWORD}</code>" in page

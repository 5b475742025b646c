"""Signing in by a provider of identities: who it proves is in, and whoever it does not prove stays out
(R-SEC-2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.core.cache import cache
from django.test import Client, override_settings

from config.env import Environment
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Person
from tests.conftest import House
from tests.doubles.identity_provider import CLIENT, SECRET, IdentityProvider, identity_provider
from tests.proves import proves

__all__ = ("identity_provider",)
LEAVE = "/account/oidc/sso/login/"
HTML = {"accept": "text/html"}
Lie = Callable[[IdentityProvider], None]


@pytest.fixture(autouse=True)
def configured(identity_provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A house that knows this provider, by the settings of its environment."""
    cache.clear()
    monkeypatch.setenv("INTERLOCK_OIDC_URL", identity_provider.url)
    monkeypatch.setenv("INTERLOCK_OIDC_CLIENT_ID", CLIENT)
    monkeypatch.setenv("INTERLOCK_OIDC_SECRET", SECRET)
    app = Environment().oidc_app
    assert app is not None
    with knowing(app):
        yield
    cache.clear()


@contextmanager
def knowing(app: dict[str, Any]) -> Iterator[None]:
    """A house with this provider configured."""
    ours: dict[str, Any] = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]
    with override_settings(SOCIALACCOUNT_PROVIDERS={"openid_connect": {**ours, "APPS": [app]}}):
        yield


@pytest.fixture
def person(house: House, identity_provider: IdentityProvider) -> Person:
    """Somebody whom an administrator added and the provider knows."""
    found = house.people.approver.person
    identity_provider.person = {"sub": str(found.id), "email": found.email.upper(), "email_verified": True}
    return found


def sent_away(client: Client, path: str = LEAVE) -> str:
    """Where the browser is sent to sign in."""
    answer = client.post(path, headers=HTML)
    assert answer.status_code == 302, answer.content
    return str(answer.headers["Location"])


def signed_on(client: Client, provider: IdentityProvider) -> Any:
    """The answer to a browser that went all the way round."""
    return client.get(provider.authorize(sent_away(client)), headers=HTML)


def is_in(client: Client) -> bool:
    """Whether the client is somebody now."""
    return bool(client.get("/styleguide", headers=HTML).status_code == 200)


@proves("R-SEC-2", part="single sign-on")
@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_whom_an_administrator_added_signs_in_by_the_provider(
    person: Person, identity_provider: IdentityProvider, algorithm: str
) -> None:
    identity_provider.algorithm = algorithm
    client = Client()
    page = client.get("/account/login/", headers=HTML).content.decode()
    assert f'action="{LEAVE}' in page
    assert signed_on(client, identity_provider).headers["Location"] == "/"
    assert is_in(client)
    asked = identity_provider.asked
    assert asked["code_challenge_method"] == "S256"
    assert set(asked["scope"].split()) == {"openid", "profile", "email"}
    assert len(asked["nonce"]) >= 32


def test_the_first_sign_on_ties_the_account_and_leaves_the_password(
    person: Person, identity_provider: IdentityProvider
) -> None:
    person.set_password("a long enough password")
    person.save(update_fields=["password"])
    signed_on(Client(), identity_provider)
    person.refresh_from_db()
    assert person.check_password("a long enough password")
    (account,) = SocialAccount.objects.filter(user=person)
    assert set(account.extra_data) == {"iss", "sub", "email", "email_verified", "name"}
    identity_provider.person |= {"email": "renamed@people.example"}
    again = Client()
    signed_on(again, identity_provider)
    assert is_in(again)


@proves("R-SEC-2", part="single sign-on makes no account")
def test_a_stranger_gets_no_account(house: House, identity_provider: IdentityProvider) -> None:
    identity_provider.person = {"email": "stranger@people.example", "email_verified": True}
    client = Client()
    assert "made by administrators" in signed_on(client, identity_provider).content.decode()
    assert not is_in(client)
    assert not Person.objects.filter(email="stranger@people.example").exists()


@pytest.mark.parametrize("said", [False, None, "false", 1])
def test_an_address_that_the_provider_has_not_verified_is_nobody_s(
    person: Person, identity_provider: IdentityProvider, said: object
) -> None:
    identity_provider.person["email_verified"] = said
    client = Client()
    signed_on(client, identity_provider)
    assert not is_in(client)
    assert not SocialAccount.objects.filter(user=person).exists()


@proves("R-SEC-2", part="single sign-on: another's address folds to nobody")
def test_a_letter_that_folds_to_another_is_another_letter(
    person: Person, identity_provider: IdentityProvider
) -> None:
    Person.objects.filter(id=person.id).update(email=f"k{person.email}")
    identity_provider.person["email"] = f"\u212a{person.email}"
    client = Client()
    signed_on(client, identity_provider)
    assert not is_in(client)
    assert not SocialAccount.objects.filter(user=person).exists()


@proves("R-SEC-2", part="a borrowed session ties no account")
@pytest.mark.parametrize("process", ["connect", "redirect", ""])
def test_whoever_is_in_cannot_tie_an_account_of_the_provider_by_hand(
    person: Person, identity_provider: IdentityProvider, process: str
) -> None:
    identity_provider.person = {"sub": "a thief", "email": "thief@people.example", "email_verified": False}
    borrowed = Client()
    borrowed.force_login(person)
    assert borrowed.post(f"{LEAVE}?process={process}", headers=HTML).status_code == 401
    # A state from before the refusal.
    back = identity_provider.authorize(sent_away(borrowed))
    session = borrowed.session
    for state, *_more in session["socialaccount_states"].values():
        state["process"] = process
    session.save()
    assert borrowed.get(back, headers=HTML).status_code == 401
    assert not SocialAccount.objects.filter(user=person).exists()


def test_a_person_sees_and_removes_what_is_tied_and_can_add_nothing(
    person: Person, identity_provider: IdentityProvider
) -> None:
    person.set_password("a long enough password")
    person.save(update_fields=["password"])
    client = Client()
    signed_on(client, identity_provider)
    tied = SocialAccount.objects.get(user=person)
    shown = client.get("/account/sso/", headers=HTML).content.decode()
    assert identity_provider.url in shown
    assert "process=connect" not in shown
    client.post("/account/sso/", {"account": tied.pk}, headers=HTML)
    assert not SocialAccount.objects.filter(user=person).exists()
    assert "No account of a provider" in client.get("/account/sso/", headers=HTML).content.decode()


def test_who_is_switched_off_is_not_let_in(person: Person, identity_provider: IdentityProvider) -> None:
    Person.objects.filter(id=person.id).update(is_active=False)
    client = Client()
    assert signed_on(client, identity_provider).headers["Location"] == "/account/inactive/"
    assert not is_in(client)


@proves("R-SEC-2", part="a second factor after single sign-on")
def test_a_second_factor_is_asked_for_after_the_provider_too(
    person: Person, identity_provider: IdentityProvider
) -> None:
    TOTP.activate(person, generate_totp_secret())
    client = Client()
    answer = signed_on(client, identity_provider)
    assert answer.headers["Location"].startswith("/account/2fa/authenticate/")
    assert not is_in(client)


def _altered(**claims: Any) -> Lie:
    return lambda provider: provider.altered.update(claims)


def _signed(algorithm: str, key: Any) -> Lie:
    return lambda provider: setattr(provider, "signed_with", (algorithm, key))


LIES: dict[str, Lie] = {
    "another nonce": _altered(nonce="of another sign-in"),
    "no nonce": _altered(nonce=None),
    "another issuer": _altered(iss="https://evil.example"),
    "another audience": _altered(aud="another client"),
    "made for another client": _altered(aud=[CLIENT, "another"], azp="another"),
    "one of several without saying for whom": _altered(aud=[CLIENT, "another"]),
    "run out": _altered(iat=1, exp=2),
    "never runs out": _altered(exp=None),
    "a foreign key": _signed("ES256", ec.generate_private_key(ec.SECP256R1())),
    "the client's secret for a key": _signed("HS256", SECRET.ljust(32)),
    "no signature": _signed("none", None),
    "user info of somebody else": lambda provider: provider.told.update(sub="somebody else"),
    "the description of another issuer": lambda provider: provider.description.update(
        issuer="https://evil.example"
    ),
    "no keys": lambda provider: provider.description.update(jwks_uri=f"{provider.url}/nothing"),
}


@proves("R-SEC-2", part="single sign-on: nothing unproven is believed")
@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_does_not_hold_signs_nobody_in(
    person: Person, identity_provider: IdentityProvider, lie: str
) -> None:
    client = Client()
    back = identity_provider.authorize(sent_away(client))
    LIES[lie](identity_provider)
    answer = client.get(back, headers=HTML)
    assert answer.status_code == 401
    assert "You were not signed in" in answer.content.decode()
    assert not is_in(client)
    assert not SocialAccount.objects.filter(user=person).exists()


def audited(house: House, person: Person) -> list[tuple[str, Any, str]]:
    """What the audit log of the house says of the person's coming in."""
    verbs = ("person.tie", "person.sign_in", "person.refuse")
    with tenant_transaction(house.tenant.id):
        found = AuditEntry.objects.filter(object=f"person:{person.id}", verb__in=verbs).order_by("at", "id")
        return [(one.verb, one.after.get("by"), one.reason) for one in found]


@proves("R-SEC-6", part="sign-ins")
def test_coming_in_and_being_kept_out_stand_in_the_audit_log(
    house: House, person: Person, identity_provider: IdentityProvider
) -> None:
    signed_on(Client(), identity_provider)
    person.set_password("a long enough password")
    person.is_active = False
    person.save(update_fields=["password", "is_active"])
    signed_on(Client(), identity_provider)
    Client().post("/account/login/", {"login": person.email, "password": "a long enough password"})
    off = "The account is switched off."
    assert audited(house, person) == [
        ("person.tie", None, ""),
        ("person.sign_in", ["socialaccount"], ""),
        ("person.refuse", ["socialaccount"], off),
        ("person.refuse", ["password"], off),
    ]


@proves("R-SEC-2", part="sign-ons in the log")
def test_the_log_names_a_refused_sign_on_and_no_code(
    house: House, identity_provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    identity_provider.person = {"email": "stranger@people.example", "email_verified": True}
    signed_on(Client(), identity_provider)
    said = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert any("/login/callback/" in line.get("request", "") for line in said)
    assert "code-0" not in str(said)
    assert [line["reason"] for line in said if line["event"] == "sign_on_refused"] == ["nobody here"]


def test_the_answer_to_another_browser_s_question_signs_nobody_in(
    person: Person, identity_provider: IdentityProvider
) -> None:
    back = identity_provider.authorize(sent_away(Client()))
    victim = Client()
    assert victim.get(back, headers=HTML).status_code == 401
    assert not is_in(victim)


def test_an_answer_is_good_once(person: Person, identity_provider: IdentityProvider) -> None:
    client = Client()
    back = identity_provider.authorize(sent_away(client))
    client.get(back, headers=HTML)
    client.post("/account/logout/")
    assert client.get(back, headers=HTML).status_code == 401
    assert not is_in(client)


def test_a_link_cannot_say_what_the_provider_is_asked(
    person: Person, identity_provider: IdentityProvider
) -> None:
    address = sent_away(Client(), f"{LEAVE}?scope=offline_access&auth_params=nonce%3Dmine%26prompt%3Dnone")
    asked = parse_qs(urlsplit(address).query)
    assert set(asked["scope"][0].split()) == {"openid", "profile", "email"}
    assert asked["nonce"] != ["mine"]
    assert "prompt" not in asked


def test_two_issuers_with_the_same_subject_are_two_people(
    person: Person, identity_provider: IdentityProvider
) -> None:
    signed_on(Client(), identity_provider)
    before = SocialAccount.objects.get(user=person).uid
    assert before not in (str(person.id), "")
    other = IdentityProvider()
    try:
        other.person = {"sub": str(person.id), "email": "stranger@people.example", "email_verified": True}
        app = Environment().oidc_app
        assert app is not None
        with knowing({**app, "settings": {**app["settings"], "server_url": other.url}}):
            client = Client()
            signed_on(client, other)
            assert not is_in(client)
    finally:
        other.close()


@pytest.mark.parametrize(
    "description",
    [
        {"token_endpoint": "http://192.0.2.1/token"},
        {"authorization_endpoint": None},
        {"jwks_uri": "ftp://127.0.0.1/keys"},
    ],
)
def test_a_provider_in_the_clear_is_not_used(
    house: House, identity_provider: IdentityProvider, description: dict[str, Any]
) -> None:
    identity_provider.description = description
    assert Client().post(LEAVE, headers=HTML).status_code == 401


@proves("R-SEC-2", part="the description itself is not fetched in the clear")
def test_a_description_in_the_clear_is_not_even_asked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("requests.Session.request", lambda _session, _verb, url, **_more: asked.append(url))
    app = Environment().oidc_app
    assert app is not None
    with knowing({**app, "settings": {**app["settings"], "server_url": "http://idp.corp.example"}}):
        assert Client().post(LEAVE, headers=HTML).status_code == 401
    assert asked == []


@proves("R-SEC-2", part="a provider that sends elsewhere is not followed")
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys"])
def test_a_provider_that_sends_elsewhere_is_not_followed(
    person: Person, identity_provider: IdentityProvider, path: str
) -> None:
    client = Client()
    back = identity_provider.authorize(sent_away(client))
    identity_provider.moved[path] = f"{identity_provider.url}/moved{path}"
    assert client.get(back, headers=HTML).status_code == 401
    assert not is_in(client)


def test_a_provider_that_is_away_is_told_and_no_fault_of_ours(
    house: House, identity_provider: IdentityProvider
) -> None:
    identity_provider.close()
    answer = Client().post(LEAVE, headers=HTML)
    assert answer.status_code == 401
    assert "did not answer" in answer.content.decode()


def test_an_unknown_provider_is_not_there(house: House) -> None:
    assert Client().post("/account/oidc/other/login/", headers=HTML).status_code == 404


def test_the_accounts_of_the_provider_are_found_in_ones_own_menu(
    client: Client, identity_provider: IdentityProvider, person: Person
) -> None:
    signed_on(client, identity_provider)
    linked = 'class="menu-item" href="/account/sso/"'
    assert linked in client.get("/preferences", headers=HTML).content.decode()
    page = client.get("/account/sso/", headers=HTML).content.decode()
    assert identity_provider.url in page
    with override_settings(SOCIALACCOUNT_PROVIDERS={"openid_connect": {"APPS": []}}):
        assert linked not in client.get("/preferences", headers=HTML).content.decode()

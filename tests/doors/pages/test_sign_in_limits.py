"""A stranger's guesses keep nobody out, and many guesses are bounded all the same (R-SEC-11)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client, override_settings

from tenancy.actions import add_member
from tenancy.actions.sign_in import forget_old_sign_ins
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, FailedSignIn, KnownDevice, Person
from tests.conftest import House
from tests.doors.pages.people import at, text
from tests.factories.tenancy import make_somebody
from tests.proves import proves

PASSWORD, WRONG = "a long enough password", "not the password"
IN = "/account/login/"
HOME, ATTACKER = "198.51.100.7", "203.0.113.66"
BROWSER = "Mozilla/5.0 (Linux) Firefox/140.0"


@pytest.fixture
def person(house: House) -> Iterator[Person]:
    """Somebody with a password, and nobody's failures counted."""
    FailedSignIn.objects.all().delete()
    found = house.people.approver.person
    found.set_password(PASSWORD)
    found.save(update_fields=["password"])
    yield found
    FailedSignIn.objects.all().delete()


def browser(address: str) -> Client:
    """A browser at an address that nobody knows yet."""
    return Client(REMOTE_ADDR=address, headers={"accept": "text/html", "user-agent": BROWSER})


def attempt(client: Client, email: str, password: str) -> Any:
    """The answer to one POST of the sign-in form."""
    return client.post(IN, {"login": email, "password": password})


def guess(person: Person, times: int, address: str = ATTACKER) -> None:
    """Wrong passwords for a person, each from a new browser at this address."""
    for _ in range(times):
        attempt(browser(address), person.email, WRONG)


def is_in(answer: Any) -> bool:
    """Whether the answer is that of a sign-in that succeeded."""
    return bool(answer.status_code == 302)


@proves("R-SEC-11", part="nobody is kept out by another's wrong passwords: another address")
def test_owner_at_another_address_signs_in_after_a_stranger_guessed(person: Person) -> None:
    guess(person, 12)
    assert not is_in(attempt(browser(ATTACKER), person.email, PASSWORD))
    assert is_in(attempt(browser(HOME), person.email, PASSWORD))


@proves("R-SEC-11", part="nobody is kept out by another's wrong passwords: a known device")
def test_known_device_at_the_attackers_address_signs_in_after_a_stranger_guessed(person: Person) -> None:
    known = browser(ATTACKER)
    assert is_in(attempt(known, person.email, PASSWORD))
    known.post("/account/logout/")
    guess(person, 12)
    assert not is_in(attempt(browser(ATTACKER), person.email, PASSWORD))
    assert is_in(attempt(known, person.email, PASSWORD))


@proves("R-SEC-11", part="a known device passes a crowded address")
def test_known_device_at_a_crowded_address_signs_in(person: Person) -> None:
    known = browser(ATTACKER)
    attempt(known, person.email, PASSWORD)
    known.post("/account/logout/")
    for number in range(31):
        attempt(browser(ATTACKER), f"nobody{number}@people.example", WRONG)
    assert attempt(browser(ATTACKER), person.email, PASSWORD).status_code == 429
    assert is_in(attempt(known, person.email, PASSWORD))


@proves("R-SEC-11", part="a known device does not guess without end")
def test_known_device_with_five_wrong_passwords_waits_and_keeps_no_stranger_waiting(person: Person) -> None:
    stolen = browser(HOME)
    attempt(stolen, person.email, PASSWORD)
    stolen.post("/account/logout/")
    for _ in range(5):
        attempt(stolen, person.email, WRONG)
    assert not is_in(attempt(stolen, person.email, PASSWORD))
    assert is_in(attempt(browser("198.51.100.9"), person.email, PASSWORD))


@proves("R-SEC-11", part="many addresses against one account are bounded")
def test_many_addresses_against_one_account_are_refused_and_familiar_places_are_not(person: Person) -> None:
    known = browser(HOME)
    attempt(known, person.email, PASSWORD)
    for number in range(15):
        guess(person, 4, f"203.0.113.{number}")
    refused = attempt(browser("203.0.113.200"), person.email, PASSWORD)
    assert not is_in(refused)
    assert "Too many attempts" in text(refused)
    guessed = FailedSignIn.objects.filter(person=person).exclude(step="refused").count()
    assert guessed == 60
    assert is_in(attempt(browser(HOME), person.email, PASSWORD)), "the person's own address"
    known.post("/account/logout/")
    assert is_in(attempt(known, person.email, PASSWORD)), "the person's own browser"


@proves("R-SEC-11", part="a network of IPv6 addresses is one")
def test_addresses_of_one_ipv6_network_are_counted_together(person: Person) -> None:
    for number in range(5):
        guess(person, 1, f"2001:db8:1:2::{number + 1}")
    assert not is_in(attempt(browser("2001:db8:1:2::99"), person.email, PASSWORD))
    assert is_in(attempt(browser("2001:db8:1:3::99"), person.email, PASSWORD))


@proves("R-SEC-11", part="the address behind a proxy")
def test_address_is_read_from_the_trusted_proxy_alone(person: Person) -> None:
    def through(forwarded: str) -> Any:
        return browser("10.0.0.1").post(
            IN, {"login": person.email, "password": WRONG}, headers={"x-forwarded-for": forwarded}
        )

    with override_settings(ALLAUTH_TRUSTED_PROXY_COUNT=1):
        through(f"{HOME}, {ATTACKER}")
    through(HOME)
    found = FailedSignIn.objects.order_by("at").values_list("address", flat=True)
    assert list(found) == [ATTACKER, "10.0.0.1"]


@proves("R-SEC-11", part="the device's cookie")
def test_device_cookie_is_for_no_script_and_a_forged_or_anothers_one_is_a_strangers(
    house: House, person: Person
) -> None:
    known = browser(ATTACKER)
    attempt(known, person.email, PASSWORD)
    cookie = known.cookies["device"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    other = house.people.second_approver.person
    guess(other, 5)
    other.set_password(PASSWORD)
    other.save(update_fields=["password"])
    for value in (cookie.value, "forged", cookie.value[:-2] + "xx"):
        stranger = browser(ATTACKER)
        stranger.cookies["device"] = value
        assert not is_in(attempt(stranger, other.email, PASSWORD))


@proves("R-SEC-11", part="a device is revocable")
def test_forgotten_device_is_a_strangers_and_a_new_password_forgets_all(person: Person) -> None:
    known = browser(ATTACKER)
    attempt(known, person.email, PASSWORD)
    device = KnownDevice.objects.get(person=person)
    stranger = at(make_somebody_like(person))
    assert stranger.post(f"/account/devices/{device.id}/forget").status_code == 404
    assert known.post(f"/account/devices/{device.id}/forget").status_code == 302
    known.post("/account/logout/")
    guess(person, 5)
    assert not is_in(attempt(known, person.email, PASSWORD))
    FailedSignIn.objects.all().delete()
    attempt(known, person.email, PASSWORD)
    fresh = "another long password"
    changed = {"oldpassword": PASSWORD, "password1": fresh, "password2": fresh}
    assert known.post("/account/password/change/", changed).status_code == 302
    assert not KnownDevice.objects.filter(person=person).exists()


def make_somebody_like(person: Person) -> Any:
    """Somebody else of a tenant in which the person is."""
    from tenancy.queries import tenants_by_id, tenants_of_person  # noqa: PLC0415 - for this helper alone

    return make_somebody(tenants_by_id(tenants_of_person(person.id))[0], Role.AUDITOR)


@proves("R-SEC-11", part="failed sign-ins are recorded, without password or a stranger's name")
def test_failed_sign_in_keeps_time_address_and_browser_and_no_password(person: Person) -> None:
    before = database_now()
    guess(person, 1)
    attempt(browser(ATTACKER), "unknown.name@people.example", "hunter2-secret")
    known, unknown = FailedSignIn.objects.order_by("at")
    assert (known.person_id, known.address, known.browser, known.step) == (
        person.id, ATTACKER, BROWSER, "password",
    )  # fmt: skip
    assert before <= known.at <= database_now()
    assert unknown.person_id is None
    kept = "".join(str(value) for row in (known, unknown) for value in vars(row).values())
    assert "unknown.name" not in kept
    assert "hunter2" not in kept
    assert WRONG not in kept


@proves("R-SEC-11", part="failed sign-ins are bounded")
def test_failed_sign_ins_do_not_grow_with_refusals_and_go_with_age(person: Person) -> None:
    guess(person, 40)
    assert FailedSignIn.objects.filter(person=person).exclude(step="refused").count() == 5
    assert FailedSignIn.objects.filter(person=person, step="refused").count() == 1
    row = FailedSignIn.objects.filter(person=person).first()
    assert row is not None
    long = "x" * 5_000
    browser(HOME).post(IN, {"login": person.email, "password": WRONG}, headers={"user-agent": long})
    assert FailedSignIn.objects.filter(address=HOME).get().browser == long[:200]
    for days, whose in ((31, person), (2, person), (2, None)):
        FailedSignIn.objects.create(
            at=database_now() - timedelta(days=days), step="password", account=b"x" * 32, person=whose,
            source=f"10.9.9.{days}",
        )  # fmt: skip
    forget_old_sign_ins()
    assert list(FailedSignIn.objects.filter(account=b"x" * 32).values_list("source", "person")) == [
        ("10.9.9.2", person.id)
    ]


@proves("R-SEC-11", part="codes are guessed no faster than passwords")
def test_wrong_codes_count_as_wrong_passwords_do_and_not_at_another_address(person: Person) -> None:
    TOTP.activate(person, generate_totp_secret())
    thief = browser(ATTACKER)
    attempt(thief, person.email, PASSWORD)
    for _ in range(6):
        answer = thief.post("/account/2fa/authenticate/", {"code": "000000"})
    assert "Too many attempts" in text(answer)
    assert FailedSignIn.objects.filter(person=person, step="code").count() == 5
    owner = browser(HOME)
    attempt(owner, person.email, PASSWORD)
    assert "not right" in text(owner.post("/account/2fa/authenticate/", {"code": "000000"}))


@proves("R-SEC-11", part="an administrator sees who is limited and lifts it")
def test_administrator_sees_and_lifts_a_limit_of_their_people_alone(house: House, person: Person) -> None:
    guess(person, 6)
    admin = at(house.people.admin)
    page = text(admin.get("/tenant/sign-ins"))
    assert "People who have to wait" in page
    assert ATTACKER in page
    assert "Refused: too many attempts" in page
    elsewhere = at(make_somebody(house.people.other_tenant, Role.ADMIN))
    assert person.name not in text(elsewhere.get("/tenant/sign-ins"))
    assert elsewhere.post(f"/tenant/people/{person.id}/lift", {"reason": "x"}).status_code == 404
    assert at(house.people.operator).post(f"/tenant/people/{person.id}/lift").status_code == 403
    assert not is_in(attempt(browser(ATTACKER), person.email, PASSWORD))
    assert admin.post(f"/tenant/people/{person.id}/lift", {"reason": "It was them"}).status_code == 302
    assert is_in(attempt(browser(ATTACKER), person.email, PASSWORD))
    assert "People who have to wait" not in text(admin.get("/tenant/sign-ins"))
    with tenant_transaction(house.tenant.id):
        line = AuditEntry.objects.get(verb="sign_in.lift", object=f"person:{person.id}")
    assert (line.principal, line.reason) == (house.people.admin.id, "It was them")


@proves("R-SEC-11", part="a lifted person passes a crowded address")
def test_person_who_was_let_through_passes_at_a_crowded_address(house: House, person: Person) -> None:
    for number in range(31):
        attempt(browser(ATTACKER), f"nobody{number}@people.example", WRONG)
    assert attempt(browser(ATTACKER), person.email, PASSWORD).status_code == 429
    admin = at(house.people.admin)
    assert "where many attempts failed" in text(admin.get("/tenant/sign-ins"))
    admin.post(f"/tenant/people/{person.id}/lift", {"reason": "It was them"})
    assert is_in(attempt(browser(ATTACKER), person.email, PASSWORD))


@proves("R-SEC-11", part="a lifted person passes while the guessing goes on")
def test_person_who_was_let_through_passes_while_many_addresses_guess_on(
    house: House, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(15):
        guess(person, 4, f"203.0.113.{number}")
    assert not is_in(attempt(browser(HOME), person.email, PASSWORD))
    at(house.people.admin).post(f"/tenant/people/{person.id}/lift", {"reason": "It was them"})
    for number in range(15):
        guess(person, 4, f"198.18.0.{number}")
    assert not is_in(attempt(browser("198.18.0.200"), person.email, PASSWORD)), "an address of no lift"
    monkeypatch.setattr("tenancy.actions.sign_in.LIFTED", timedelta(0))
    assert not is_in(attempt(browser(HOME), person.email, PASSWORD)), "once its time is over"
    monkeypatch.undo()
    assert is_in(attempt(browser(HOME), person.email, PASSWORD))


@proves("R-SEC-11", part="failed sign-ins are shown to the administrators of a person's tenants and to them")
def test_failed_sign_ins_are_shown_in_each_tenant_of_a_person_and_to_them(
    house: House, person: Person
) -> None:
    guess(person, 1)
    second = house.people.other_tenant
    next_door = at(make_somebody(second, Role.ADMIN))
    assert ATTACKER not in text(next_door.get("/tenant/sign-ins"))
    add_member(second.id, person, Role.AUDITOR)
    assert ATTACKER in text(next_door.get("/tenant/sign-ins"))
    own = browser(HOME)
    own.force_login(person)
    assert ATTACKER in text(own.get("/account/sessions/"))
    assert ATTACKER not in text(at(house.people.second_approver).get("/account/sessions/"))
    assert at(house.people.auditor).get("/tenant/sign-ins").status_code == 403
    assert own.post(f"/account/devices/{fresh_id()}/forget").status_code == 404


@proves("R-SEC-11", part="tries at once are counted")
def test_tries_are_counted_before_they_are_looked_at(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def slow(*_: Any, **__: Any) -> None:
        seen.append(FailedSignIn.objects.filter(person=person).count())

    monkeypatch.setattr("allauth.account.adapter.authenticate", slow)
    guess(person, 2)
    assert seen == [1, 2]

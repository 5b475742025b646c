"""`manage.py platform`: who administers the platform (R-SEC-10)."""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.models import Person
from tenancy.platform_models import PlatformAdmin, PlatformKey
from tests.conftest import House
from tests.doors.api.program import Program, refusal
from tests.factories.platform import make_platform_admin, typed
from tests.proves import proves
from tests.servers import TestServers


@pytest.fixture
def email(house: House) -> str:
    """An address that nobody has."""
    return f"ops-{fresh_id().hex[-12:]}@people.example"


@proves("R-SEC-10", part="a platform administrator signs in without a tenant")
def test_added_person_sets_a_password_and_lands_on_the_platforms_page(
    servers: TestServers, email: str
) -> None:
    link, said = typed(servers, "add", email, "--name", "Ops")
    assert f"{email} is a platform administrator." in said
    path = "/" + link.strip().split("/", 3)[3]
    client = Client(headers={"accept": "text/html"})
    where = client.get(path, follow=True).redirect_chain[-1][0]
    password = "correct horse battery staple"
    client.post(where, {"password1": password, "password2": password})
    client.post("/account/login/", {"login": email, "password": password})
    page = client.get("/", follow=True)
    assert page.redirect_chain == [("/platform/tenants", 302)]
    assert page.status_code == 200
    _, said = typed(servers, "add", email)
    assert "already" in said
    assert "sign in as before" in said


@proves("R-SEC-10", part="the shell gives and takes")
def test_platform_administrators_and_keys_are_listed_and_taken(servers: TestServers, email: str) -> None:
    typed(servers, "add", email)
    assert email in typed(servers, "list")[0]
    clear, said = typed(servers, "key", email, "--label", "nightly")
    key = PlatformKey.objects.get(person__email=email)
    assert 89 <= (key.expires_at - database_now()).days <= 90
    assert f"{key.expires_at:%Y-%m-%d}" in said
    assert f"{key.id}  {email}" in typed(servers, "keys")[0]
    who = Program(clear=clear.strip())
    assert who.get("/tenants").status_code == 200
    typed(servers, "revoke", str(key.id), "--reason", "leaked")
    assert refusal(who.get("/tenants")) == (401, "key-revoked")
    typed(servers, "remove", email, "--reason", "left")
    assert email not in typed(servers, "list")[0]
    with pytest.raises(CommandError, match="no platform administrator"):
        typed(servers, "remove", email, "--reason", "left")
    with pytest.raises(CommandError, match="no platform administrator"):
        typed(servers, "key", email)
    with pytest.raises(CommandError, match="no person"):
        typed(servers, "key", "nobody@people.example")
    with pytest.raises(CommandError, match="no key"):
        typed(servers, "revoke", str(fresh_id()))


@proves("R-SEC-10", part="without the owner's address nobody is named")
def test_platform_add_without_the_owners_address_is_refused(house: House, email: str) -> None:
    with pytest.raises(CommandError, match="DATABASE_OWNER_URL"):
        call_command("platform", "add", email)
    assert not Person.objects.filter(email=email).exists()


def test_key_of_a_removed_platform_administrator_is_refused(servers: TestServers, house: House) -> None:
    made = make_platform_admin(servers)
    assert made.program.get("/tenants").status_code == 200
    typed(servers, "remove", made.person.email, "--reason", "left")
    assert not PlatformAdmin.objects.filter(person_id=made.person.id).exists()
    assert refusal(made.program.get("/tenants")) == (401, "key-revoked")

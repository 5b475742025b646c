"""`manage.py person`: a team's first day, which relates nobody (R-SEC-1, R-APPR-5)."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership, Person, PersonTie
from tests.conftest import House
from tests.proves import proves

ORIGIN = "https://interlock.example"
SECRET = "correct horse battery staple"


def person(house: House, verb: str, email: str, *more: str, origin: str = ORIGIN) -> str:
    """What `manage.py person` says."""
    out = StringIO()
    call_command("person", verb, email, *more, "--tenant", house.tenant.slug, "--origin", origin, stdout=out)
    return out.getvalue()


@pytest.fixture
def address() -> str:
    """Somebody nobody knows yet."""
    return f"ann-{fresh_id().hex}@people.example"


@proves("R-APPR-5", part="the command relates nobody")
def test_invite_prints_a_link_that_sets_the_password_and_relates_nobody(house: House, address: str) -> None:
    said = person(house, "invite", address, "--name", "Ann", "--role", "reviewer", "--queue", "finance")
    assert said.count("\n") == 1
    assert said.startswith(f"{ORIGIN}/account/password/reset/key/")
    client = Client(headers={"accept": "text/html"})
    page = client.get(said.strip().removeprefix(ORIGIN), follow=True)
    client.post(page.redirect_chain[-1][0], {"password1": SECRET, "password2": SECRET}, follow=True)
    made = Person.objects.get(email=address)
    assert made.check_password(SECRET)
    with tenant_transaction(house.tenant.id):
        member = Membership.objects.get(person=made)
        assert (member.role, member.queues) == ("reviewer", ["finance"])
        assert not PersonTie.objects.exists()
        line = AuditEntry.objects.get(verb="person.link")
        assert (line.principal, line.after["link"]) == (None, "printed")


def test_a_lost_link_is_made_again_until_the_password_is_set(house: House, address: str) -> None:
    first = person(house, "invite", address, "--name", "Ann", "--role", "admin", "--queue", "*")
    # The same person's address; what follows depends on the second in which the link is made.
    assert person(house, "link", address.upper()).partition("-")[0] == first.partition("-")[0]
    made = Person.objects.get(email=address)
    made.set_password(SECRET)
    made.save()
    with pytest.raises(CommandError, match="has signed in"):
        person(house, "link", address)


@proves("R-SEC-7", part="person command")
def test_a_wrong_word_is_an_error_and_adds_nobody(house: House, address: str) -> None:
    given = ("--name", "Ann", "--role", "admin", "--queue", "*")
    for wrong in ("", "interlock.example", "ftp://interlock.example"):
        with pytest.raises(CommandError, match="say where the console is"):
            person(house, "invite", address, *given, origin=wrong)
    with pytest.raises(CommandError, match="in which queues they decide"):
        person(house, "invite", address, *given[:4])
    with pytest.raises(CommandError, match="has no person"):
        person(house, "link", address)
    assert not Person.objects.filter(email=address).exists()
    person(house, "invite", address, *given)
    with pytest.raises(CommandError, match="has the role admin already"):
        person(house, "invite", address, *given)
    with pytest.raises(CommandError, match="there is no tenant"):
        call_command("person", "link", address, "--tenant", "none", "--origin", ORIGIN)

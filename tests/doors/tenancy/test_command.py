"""`manage.py key`: the key alone on standard output (R-API-10, R-SEC-2)."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tenancy.authentication import caller_of
from tenancy.core.errors import KeyRevoked
from tenancy.ids import fresh_id
from tests.conftest import House
from tests.proves import proves


def key(house: House, verb: str, *more: str) -> str:
    """What `manage.py key` says."""
    out = StringIO()
    call_command("key", verb, *more, "--tenant", house.tenant.slug, stdout=out)
    return out.getvalue()


@proves("R-API-10", part="key create")
def test_create_prints_a_working_key_and_nothing_else(house: House) -> None:
    said = key(house, "create", "--role", "client")
    assert said.count("\n") == 1
    caller = caller_of(said.strip())
    assert (caller.tenant, caller.scopes) == (house.tenant.id, ("submit", "read"))


@proves("R-SEC-2", part="--for")
def test_create_for_somebody_makes_them_answer_for_it(house: House) -> None:
    person = house.people.admin.person
    said = key(house, "create", "--role", "admin", "--for", person.email.upper())
    assert caller_of(said.strip()).owner == person.id


@proves("R-SEC-2", part="a fresh owner")
def test_create_without_a_name_makes_a_fresh_owner(house: House) -> None:
    owners = {caller_of(key(house, "create", "--role", "client").strip()).owner for _ in range(2)}
    assert len(owners) == 2


@proves("R-SEC-2", part="revoke and list")
def test_a_revoked_key_is_listed_as_revoked(house: House) -> None:
    clear = key(house, "create", "--role", "client", "--label", "till", "--expires", "30").strip()
    assert caller_of(clear).tenant == house.tenant.id
    (line,) = [line for line in key(house, "list").splitlines() if line.endswith("till")]
    assert "active" in line
    assert "never" not in line
    assert clear not in line
    key(house, "revoke", line.split()[0])
    with pytest.raises(KeyRevoked):
        caller_of(clear)
    (line,) = [line for line in key(house, "list").splitlines() if line.endswith("till")]
    assert "revoked" in line


@proves("R-SEC-7", part="key command")
@pytest.mark.parametrize(
    "words",
    [
        ("create", "--role", "emperor"),
        ("create", "--role", "client", "--for", "nobody@people.example"),
        ("create", "--role", "admin"),
        ("create", "--role", "reviewer"),
        ("create", "--role", "client", "--expires", "0"),
        ("create", "--role", "client", "--expires", "-1"),
        ("create", "--role", "client", "--expires", "soon"),
        ("revoke", str(fresh_id())),
        ("revoke", "x"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(house: House, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"[a-z]{3}"):
        key(house, *words)


def test_an_unknown_tenant_is_refused(house: House) -> None:
    with pytest.raises(CommandError, match="there is no tenant 'nowhere'"):
        call_command("key", "list", "--tenant", "nowhere")

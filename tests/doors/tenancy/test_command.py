"""`manage.py key`: the key alone on standard output (R-API-10, R-SEC-2)."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tenancy.core.errors import KeyRevoked
from tenancy.core.reach import Reach, read_address
from tenancy.db.ids import fresh_id
from tenancy.rest.authentication import caller_of
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


@proves("R-SEC-11", part="an end where none is chosen, without a prompt")
def test_create_says_on_standard_error_when_the_key_ends_unless_told(house: House) -> None:
    out, err = StringIO(), StringIO()
    call_command("key", "create", "--role", "client", "--tenant", house.tenant.slug, stdout=out, stderr=err)
    assert "after 90 days" in err.getvalue()
    assert caller_of(out.getvalue().strip()).scopes == ("submit", "read")
    err = StringIO()
    words = ("key", "create", "--role", "client", "--expires", "1", "--tenant", house.tenant.slug)
    call_command(*words, stdout=out, stderr=err)
    assert err.getvalue() == ""


@proves("R-SEC-11", part="limits by command")
def test_create_with_limits_makes_a_narrow_key_and_lists_them(house: House) -> None:
    said = key(
        house, "create", "--role", "operator", "--runs", "own", "--workflow", "support-*", "--workflow",
        "tool-loop", "--address", "10.0.0.0/8", "--label", "narrow",
    )  # fmt: skip
    caller = caller_of(said.strip(), read_address("10.1.2.3"))
    assert caller.reach == Reach(caller.principal, ("support-*", "tool-loop"))
    (line,) = [line for line in key(house, "list").splitlines() if line.endswith("narrow")]
    assert "own runs, workflow support-*, workflow tool-loop, from 10.0.0.0/8" in line


@proves("R-SEC-11", part="rotate by command")
def test_rotate_prints_a_new_key_of_the_same_principal(house: House) -> None:
    old = key(house, "create", "--role", "client").strip()
    before = caller_of(old)
    new = key(house, "rotate", str(before.key), "--expires", "7", "--overlap", "2")
    assert new.count("\n") == 1
    assert caller_of(new.strip()).principal == caller_of(old).principal == before.principal


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


@proves("R-SEC-11", part="no key with a role that its person lacks")
@pytest.mark.parametrize("role", ["admin", "operator"])
def test_create_with_a_role_that_its_person_lacks_is_refused(house: House, role: str) -> None:
    with pytest.raises(CommandError, match=f"lacks rights here that a key with the role {role} would have"):
        key(house, "create", "--role", role, "--for", house.people.approver.person.email)
    assert key(house, "list") == ""


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
        ("create", "--role", "client", "--runs", "some"),
        ("create", "--role", "client", "--workflow", "Not One"),
        ("create", "--role", "client", "--address", "everywhere"),
        ("rotate", str(fresh_id())),
        ("rotate", str(fresh_id()), "--overlap", "999"),
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

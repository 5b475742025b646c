"""Keys by program: made, limited, rotated, revoked, and never wider than the key that makes them (R-API-3,
R-SEC-2, R-SEC-11)."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tenancy.actions import NewKey, create_key
from tenancy.actions.keys import rotate_key
from tenancy.core.errors import Forbidden
from tenancy.core.reach import KeyLimits
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, AuditEntry, IdempotencyKey
from tenancy.people.relations import people_behind
from tests.conftest import House
from tests.doors.api.program import Program, pointers, program, refusal
from tests.doors.pages.people import at
from tests.factories.tenancy import Somebody, make_somebody
from tests.proves import proves

HERE = ("127.0.0.0/8",)


def admin_key(house: House, **more: Any) -> NewKey:
    """A key of the administrator's, made by the command."""
    return create_key(house.tenant.id, Role.ADMIN, owner=house.people.admin.person, **more)


def made(who: Program, **given: Any) -> dict[str, Any]:
    """A key made by program."""
    answer = who.post("/keys", {"name": "nightly", "role": "client", **given})
    assert answer.status_code == 201, answer.json()
    found: dict[str, Any] = answer.json()
    return found


def behind(house: House, key: dict[str, Any]) -> set[UUID]:
    """Whose deeds the key's are, without the one who was made up for it."""
    with tenant_transaction(house.tenant.id):
        found = people_behind([UUID(key["principal"])])[UUID(key["principal"])]
        return {one for one in found if one == house.people.admin.person.id}


@proves("R-API-3", part="keys")
@proves("R-SEC-2", part="a key by program: shown once")
def test_a_key_made_by_program_is_shown_once_and_works(house: House) -> None:
    who = Program(clear=admin_key(house).clear)
    key = made(who, runs="own", workflows=["support-*"], addresses=["127.0.0.0/8"], expires_in_days=7)
    assert Program(clear=key["secret"]).get("/runs").status_code == 200
    shown = who.get(f"/keys/{key['id']}").json()
    assert "secret" not in shown
    assert (shown["runs"], shown["workflows"], shown["addresses"]) == ("own", ["support-*"], ["127.0.0.0/8"])
    assert shown["owner"] is None
    assert key["secret"] not in who.get("/keys").content.decode()
    assert next(row["id"] for row in who.get("/keys").json()["results"]) == key["id"]
    with tenant_transaction(house.tenant.id):
        line = AuditEntry.objects.get(verb="key.create", object=f"key:{key['id']}")
    assert line.after["workflows"] == ["support-*"]


@proves("R-SEC-2", part="the secret is kept nowhere")
def test_a_repeated_making_is_answered_without_the_secret(house: House) -> None:
    who = Program(clear=admin_key(house).clear)
    body = {"name": "nightly", "role": "client"}
    first, again = (who.post("/keys", body, once="one") for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert (first.json()["secret"][:4], again.json()["secret"]) == ("ilk_", None)
    with tenant_transaction(house.tenant.id):
        assert first.json()["secret"] not in str(IdempotencyKey.objects.get(key="one").answer)


@proves("A8", part="keys made by keys")
def test_a_key_made_by_a_key_made_by_a_key_is_the_deed_of_the_person_behind_the_first(house: House) -> None:
    first = Program(clear=admin_key(house).clear)
    second = made(first, role="admin", owner="me")
    third = made(Program(clear=second["secret"]), role="client")
    assert behind(house, second) == behind(house, third) == {house.people.admin.person.id}


@proves("R-SEC-11", part="no key makes a wider one")
def test_a_key_makes_no_key_that_is_used_from_elsewhere_or_lasts_longer(house: House) -> None:
    narrow = admin_key(house, limits=KeyLimits(addresses=HERE), expires_in=timedelta(days=7))
    who = Program(clear=narrow.clear)
    for wide in ({"addresses": ["0.0.0.0/0"]}, {"addresses": ["::/0"]}, {"expires_in_days": 8}):
        answer = who.post("/keys", {"name": "x", "role": "client", **wide})
        assert refusal(answer) == (403, "key-too-wide"), wide
    key = made(who, role="admin", owner="me")
    assert key["addresses"] == list(HERE)
    with tenant_transaction(house.tenant.id):
        kept = ApiKey.objects.get(id=key["id"])
    assert kept.expires_at is not None
    assert narrow.key.expires_at is not None
    assert kept.expires_at <= narrow.key.expires_at
    assert made(who, addresses=["127.0.0.1"], expires_in_days=2)["addresses"] == ["127.0.0.1/32"]


@proves("R-SEC-11", part="no rotation into a wider or longer key")
def test_a_narrow_key_neither_renews_itself_for_longer_nor_rotates_a_wider_one(house: House) -> None:
    wide = admin_key(house)
    narrow = admin_key(house, limits=KeyLimits(addresses=HERE), expires_in=timedelta(days=7))
    who = Program(clear=narrow.clear)
    assert refusal(who.post(f"/keys/{wide.key.id}/rotate")) == (403, "key-too-wide")
    again = who.post(f"/keys/{narrow.key.id}/rotate").json()
    assert again["expires_at"] <= narrow.key.expires_at.isoformat()  # type: ignore[union-attr]
    assert again["principal"] == str(narrow.key.principal_id)
    assert refusal(who.get("/keys")) == (401, "key-revoked")
    assert Program(clear=again["secret"]).get("/keys").status_code == 200


@proves("R-SEC-11", part="rotate by program")
def test_a_rotated_key_keeps_its_program_and_ends_the_secret_before(house: House) -> None:
    who, old = Program(clear=admin_key(house).clear), create_key(house.tenant.id, Role.CLIENT)
    key = who.post(f"/keys/{old.key.id}/rotate", {"overlap_hours": 1}).json()
    assert key["principal"] == str(old.key.principal_id)
    for clear in (old.clear, key["secret"]):
        assert Program(clear=clear).get("/runs").status_code == 200
    ended = who.get(f"/keys/{old.key.id}").json()["expires_at"]
    assert ended <= (database_now() + timedelta(hours=1)).isoformat()
    assert who.post(f"/keys/{key['id']}/revoke", {"reason": "Leaked"}).json()["revoked_at"]
    assert Program(clear=key["secret"]).get("/runs").status_code == 401
    assert refusal(who.post(f"/keys/{key['id']}/rotate")) == (409, "key-gone")
    with tenant_transaction(house.tenant.id):
        assert AuditEntry.objects.filter(verb="key.revoke").latest("at").reason == "Leaked"


@proves("A8", part="nobody is shown the secret of a key that decides in another's name")
@pytest.mark.parametrize("role", [Role.REVIEWER, Role.ADMIN])
def test_a_key_that_decides_is_rotated_by_the_person_who_answers_for_it_alone(
    house: House, role: Role
) -> None:
    """Else an administrator would speak as a colleague: with their name on the decision, and their limits."""
    other = make_somebody(house.tenant, role)
    key = create_key(house.tenant.id, role, owner=other.person).key
    admin = house.people.admin
    page = at(admin).post(f"/tenant/keys/{key.id}/rotate", {"overlap": "0"})
    assert page.status_code == 403
    api = Program(clear=admin_key(house).clear).post(f"/keys/{key.id}/rotate")
    assert refusal(api) == (403, "forbidden")
    with pytest.raises(Forbidden):
        rotate_key(house.tenant.id, key.id, by=admin.id)
    with tenant_transaction(house.tenant.id):
        assert ApiKey.objects.get(id=key.id).revoked_at is None
    assert rotate_key(house.tenant.id, key.id, by=other.id).key.principal_id == key.principal_id
    assert rotate_key(house.tenant.id, create_key(house.tenant.id, Role.CLIENT).key.id, by=admin.id)


@proves("R-SEC-11", part="no role that its person lacks")
def test_a_key_of_nobody_neither_decides_nor_makes_one_that_its_person_lacks(house: House) -> None:
    who = Program(clear=admin_key(house).clear)
    for role in ("reviewer", "admin"):
        answer = who.post("/keys", {"name": "x", "role": role, "owner": "nobody"})
        assert (refusal(answer), pointers(answer)) == ((400, "invalid-input"), ["/owner"])
    # A key that nobody of the tenant answers for has nobody to answer for another.
    stray = program(house.tenant.id, Role.ADMIN)
    answer = stray.post("/keys", {"name": "x", "role": "reviewer", "owner": "me"})
    assert refusal(answer) == (409, "role-lacking")


@proves("R-SEC-7", part="keys by program")
@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"role": "king"}, "/role"),
        ({"owner": "you"}, "/owner"),
        ({"expires_in_days": 0}, "/expires_in_days"),
        ({"expires_in_days": 366}, "/expires_in_days"),
        ({"workflows": ["Not One"]}, "/workflows"),
        ({"addresses": ["everywhere"]}, "/addresses"),
        ({"scopes": ["admin"]}, "/scopes"),
        ({"role": "admin", "owner": "me", "runs": "own"}, "/runs"),
    ],
)
def test_a_key_that_cannot_be_names_its_field_and_is_not_made(
    house: House, given: dict[str, Any], pointer: str
) -> None:
    answer = Program(clear=admin_key(house).clear).post("/keys", {"name": "x", "role": "client", **given})
    assert (answer.status_code, pointers(answer)) == (400, [pointer])
    with tenant_transaction(house.tenant.id):
        assert ApiKey.objects.count() == 1


def test_a_person_without_the_role_any_more_makes_no_key_with_their_old_one(house: House) -> None:
    somebody: Somebody = make_somebody(house.tenant, Role.ADMIN)
    key = create_key(house.tenant.id, Role.ADMIN, owner=somebody.person)
    first = Program(clear=admin_key(house).clear)
    assert first.post(f"/members/{somebody.person.id}/deactivate", {"reason": "Left"}).status_code == 204
    assert refusal(Program(clear=key.clear).post("/keys", {"name": "x", "role": "client"}))[0] == 403

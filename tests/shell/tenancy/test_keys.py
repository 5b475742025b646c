"""Keys of programs: shown once, stored hashed, expiring, revocable, somebody's to answer for (R-SEC-2)."""

from datetime import timedelta

import psycopg
import pytest
from django.db import DatabaseError
from psycopg import sql

from tenancy import actions
from tenancy.actions import NewKey, add_member, create_key, remove_member, revoke_key
from tenancy.actions.keys import rotate_key
from tenancy.core.errors import (
    InvalidInput,
    KeyElsewhere,
    KeyExpired,
    KeyGone,
    KeyInvalid,
    KeyRevoked,
    NotFound,
    RoleLacking,
)
from tenancy.core.keys import SECRET_BYTES, format_api_key
from tenancy.core.reach import KeyLimits, Reach, RunReach, read_address
from tenancy.core.roles import Authority, Role, Scope
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, AuditEntry, Person
from tenancy.queries import standing_of, tenant_of_key, tenants_of_person
from tenancy.rest.authentication import caller_of
from tests.conftest import House
from tests.proves import proves


def made(house: House, role: Role = Role.CLIENT, *, owner: Person | None = None) -> NewKey:
    """A key of the house."""
    return create_key(house.tenant.id, role, owner=owner)


def kept(house: House, new: NewKey) -> ApiKey:
    """Its row as it stands."""
    with tenant_transaction(house.tenant.id):
        return ApiKey.objects.get(id=new.key.id)


@proves("R-SEC-2", part="who calls")
def test_a_key_says_who_calls_where_and_with_which_scopes(house: House) -> None:
    new = made(house)
    caller = caller_of(new.clear)
    assert (caller.tenant, caller.principal) == (house.tenant.id, new.key.principal_id)
    assert caller.scopes == ("submit", "read")


@proves("R-SEC-2", part="shown once")
def test_no_column_of_any_table_holds_the_clear_key(house: House, superuser: psycopg.Connection) -> None:
    new = made(house)
    secret = new.clear.rsplit("_", 1)[1][:-8]
    for table in ("tenancy_apikey", "tenancy_auditentry", "tenancy_principal", "tenancy_person"):
        found = superuser.execute(f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s", (f"%{secret}%",))
        assert found.fetchone() == (0,), table


@proves("R-SEC-2", part="own principal")
def test_each_key_is_a_principal_of_its_own(house: House) -> None:
    one, other = made(house), made(house)
    assert one.key.principal_id != other.key.principal_id
    assert caller_of(one.clear).owner != caller_of(other.clear).owner


@proves("R-SEC-2", part="owner")
def test_a_named_person_answers_for_a_key(house: House) -> None:
    person = house.people.admin.person
    assert caller_of(made(house, owner=person).clear).owner == person.id


@proves("Z6", part="revoked")
def test_a_revoked_key_is_refused_and_stays_revoked(house: House) -> None:
    new = made(house)
    at = revoke_key(house.tenant.id, new.key.id)
    with pytest.raises(KeyRevoked):
        caller_of(new.clear)
    assert revoke_key(house.tenant.id, new.key.id) == at
    with tenant_transaction(house.tenant.id):
        assert standing_of(house.tenant.id, new.key.principal_id) is None
        assert AuditEntry.objects.filter(verb="key.revoke").count() == 1


@proves("Z1", part="keys")
def test_another_tenants_key_cannot_be_revoked(house: House) -> None:
    new = create_key(house.people.other_tenant.id, Role.CLIENT)
    with pytest.raises(NotFound):
        revoke_key(house.tenant.id, new.key.id)
    assert caller_of(new.clear).tenant == house.people.other_tenant.id


@proves("Z6", part="expired")
def test_an_expired_key_is_refused(house: House) -> None:
    new = create_key(house.tenant.id, Role.CLIENT, expires_in=timedelta(microseconds=1))
    with pytest.raises(KeyExpired):
        caller_of(new.clear)
    assert standing_of(house.tenant.id, new.key.principal_id) is None


def test_a_key_lives_until_it_expires(house: House) -> None:
    new = create_key(house.tenant.id, Role.CLIENT, expires_in=timedelta(days=1))
    assert caller_of(new.clear).principal == new.key.principal_id
    assert new.key.expires_at is not None
    assert new.key.expires_at > database_now()


@proves("R-SEC-2", part="wrong secret")
def test_a_right_id_with_a_wrong_secret_is_refused(house: House) -> None:
    forged = format_api_key(made(house).key.id, bytes(SECRET_BYTES))
    with pytest.raises(KeyInvalid):
        caller_of(forged)


def test_an_unknown_key_is_refused_in_the_same_words(house: House) -> None:
    with pytest.raises(KeyInvalid):
        caller_of(format_api_key(fresh_id(), bytes(SECRET_BYTES)))
    with pytest.raises(KeyInvalid):
        caller_of("ilk_nonsense")


@proves("Z8", part="a key and its person")
def test_a_key_reaches_no_further_than_the_person_who_answers_for_it(house: House) -> None:
    person = house.people.approver.person
    add_member(house.tenant.id, person, Role.ADMIN)
    key = made(house, Role.ADMIN, owner=person)
    assert remove_member(house.tenant.id, person, Role.ADMIN)
    assert caller_of(key.clear).scopes == ("read", "inspect", "decide", "reveal")
    standing = standing_of(house.tenant.id, key.key.principal_id)
    assert standing is not None
    assert standing.scopes == (Scope.READ, Scope.INSPECT, Scope.DECIDE, Scope.REVEAL)


@proves("R-SEC-11", part="no key with a role that its person lacks")
@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR, Role.CLIENT])
def test_a_key_with_a_role_that_its_person_lacks_is_refused(house: House, role: Role) -> None:
    with pytest.raises(RoleLacking):
        made(house, role, owner=house.people.approver.person)
    with pytest.raises(RoleLacking):
        made(house, role, owner=house.people.stranger.person)
    with tenant_transaction(house.tenant.id):
        assert not ApiKey.objects.exists()


@proves("R-SEC-11", part="an end where none is chosen")
def test_a_key_without_an_end_ends_after_ninety_days(house: House) -> None:
    before = database_now()
    ends = made(house).key.expires_at
    assert ends is not None
    assert before + timedelta(days=90) <= ends <= database_now() + timedelta(days=90)


@proves("R-SEC-11", part="a rotated key keeps its principal and its limits")
def test_a_rotated_key_is_the_same_principals_and_the_one_before_ends(house: House) -> None:
    limits = KeyLimits(RunReach.OWN, ("support-*",), ("10.0.0.0/8",))
    old = create_key(house.tenant.id, Role.CLIENT, label="till", limits=limits)
    here = read_address("10.1.2.3")
    new = rotate_key(house.tenant.id, old.key.id)
    with pytest.raises(KeyRevoked):
        caller_of(old.clear, here)
    assert caller_of(new.clear, here).principal == old.key.principal_id
    assert caller_of(new.clear, here).reach == Reach(old.key.principal_id, ("support-*",))
    assert (new.key.role, new.key.label, new.key.addresses) == ("client", "till", ["10.0.0.0/8"])
    with tenant_transaction(house.tenant.id):
        verbs = list(AuditEntry.objects.filter(verb__startswith="key.").order_by("at").values_list("verb"))
    assert verbs == [("key.create",), ("key.rotate",), ("key.revoke",)]


@proves("R-SEC-11", part="a stated overlap")
def test_a_rotated_keys_secret_before_holds_for_the_overlap_alone(house: House) -> None:
    old = made(house)
    rotate_key(house.tenant.id, old.key.id, overlap=timedelta(hours=1))
    assert caller_of(old.clear).principal == old.key.principal_id
    ends = kept(house, old).expires_at
    assert ends is not None
    assert ends <= database_now() + timedelta(hours=1)
    rotate_key(house.tenant.id, old.key.id, overlap=timedelta(days=30))
    assert kept(house, old).expires_at == ends


def test_a_revoked_or_foreign_key_is_not_rotated(house: House) -> None:
    old = made(house)
    revoke_key(house.tenant.id, old.key.id)
    with pytest.raises(KeyGone):
        rotate_key(house.tenant.id, old.key.id)
    with pytest.raises(NotFound):
        rotate_key(house.people.other_tenant.id, old.key.id)


def test_a_key_is_not_rotated_where_its_person_lost_the_role(house: House) -> None:
    person = house.people.approver.person
    old = made(house, Role.REVIEWER, owner=person)
    assert remove_member(house.tenant.id, person, Role.REVIEWER)
    with pytest.raises(RoleLacking):
        rotate_key(house.tenant.id, old.key.id)


@proves("R-SEC-11", part="by address range")
@pytest.mark.parametrize(
    ("address", "fits"),
    [
        ("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("2001:db8::5", True), ("[2001:db8::5]:443", True),
        ("10.1.2.3:5555", True), ("11.1.2.3", False), ("2001:db9::5", False), ("", False), ("proxy", False),
    ],
)  # fmt: skip
def test_a_key_for_some_addresses_is_refused_from_others(house: House, address: str, fits: bool) -> None:
    limits = KeyLimits(addresses=("10.0.0.0/8", "2001:db8::/32"))
    key = create_key(house.tenant.id, Role.CLIENT, limits=limits)
    if fits:
        assert caller_of(key.clear, read_address(address)).principal == key.key.principal_id
        return
    with pytest.raises(KeyElsewhere):
        caller_of(key.clear, read_address(address))


@proves("R-SEC-7", part="limits of a key")
@pytest.mark.parametrize(
    ("role", "limits", "pointer"),
    [
        (Role.CLIENT, KeyLimits(workflows=("Support",)), "/workflows"),
        (Role.CLIENT, KeyLimits(workflows=("a,b",)), "/workflows"),
        (Role.CLIENT, KeyLimits(workflows=("%",)), "/workflows"),
        (Role.CLIENT, KeyLimits(workflows=tuple(f"w{n}" for n in range(21))), "/workflows"),
        (Role.CLIENT, KeyLimits(addresses=("10.0.0.1/8",)), "/addresses"),
        (Role.CLIENT, KeyLimits(addresses=("everywhere",)), "/addresses"),
        (Role.ADMIN, KeyLimits(runs=RunReach.OWN), "/runs"),
        (Role.ADMIN, KeyLimits(workflows=("support",)), "/workflows"),
    ],
)
def test_limits_that_are_none_are_refused(house: House, role: Role, limits: KeyLimits, pointer: str) -> None:
    owner = house.people.admin.person if role is Role.ADMIN else None
    with pytest.raises(InvalidInput) as refused:
        create_key(house.tenant.id, role, owner=owner, limits=limits)
    assert [error["pointer"] for error in refused.value.data["errors"]] == [pointer]


@proves("R-SEC-11", part="limits hold in the database")
@pytest.mark.parametrize(
    "change",
    [
        {"workflows": ["a,b"]}, {"workflows": ["%"]}, {"addresses": ["10.0.0.1/8"]}, {"runs": "all"},
        {"runs": "own", "scopes": ["read", "admin"]}, {"workflows": ["a"], "scopes": ["admin"]},
    ],
)  # fmt: skip
def test_a_row_with_limits_that_are_none_is_refused_by_the_database(
    house: House, superuser: psycopg.Connection, change: dict[str, object]
) -> None:
    # The application may change none of them at all: only the constraints stand in a superuser's way.
    key = made(house)
    changes = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in change)
    with pytest.raises((psycopg.IntegrityError, psycopg.DataError)):
        superuser.execute(
            sql.SQL("UPDATE tenancy_apikey SET {} WHERE id = %s").format(changes),
            [*change.values(), key.key.id],
        )


@proves("Z5", part="a key's person")
def test_a_key_loses_what_its_person_loses(house: House) -> None:
    person = house.people.approver.person
    key = made(house, Role.REVIEWER, owner=person)
    assert remove_member(house.tenant.id, person, Role.REVIEWER)
    assert caller_of(key.clear).scopes == ()


@proves("Z5", part="limits of a key's person")
def test_a_key_decides_within_its_persons_limits(house: House) -> None:
    person = house.people.submitter.person
    add_member(house.tenant.id, person, Role.REVIEWER, queues=("finance",))
    key = made(house, Role.REVIEWER, owner=person)
    standing = standing_of(house.tenant.id, key.key.principal_id)
    assert standing is not None
    assert standing.authorities == (Authority(queues=("finance",)),)


@proves("R-SEC-2", part="switched off")
def test_nobody_acts_who_was_switched_off(house: House) -> None:
    somebody = house.people.admin
    key = made(house, Role.ADMIN, owner=somebody.person)
    Person.objects.filter(id=somebody.person.id).update(is_active=False)
    assert standing_of(house.tenant.id, somebody.id) is None
    assert standing_of(house.tenant.id, key.key.principal_id) is None
    with pytest.raises(KeyRevoked):
        caller_of(key.clear)


@proves("R-SEC-2", part="last used")
def test_the_last_use_is_noted_once_a_minute(house: House) -> None:
    new = made(house)
    assert kept(house, new).last_used_at is None
    caller_of(new.clear)
    first = kept(house, new).last_used_at
    assert first is not None
    caller_of(new.clear)
    assert kept(house, new).last_used_at == first
    long_ago = first - timedelta(minutes=2)
    with tenant_transaction(house.tenant.id):
        ApiKey.objects.filter(id=new.key.id).update(last_used_at=long_ago)
    caller_of(new.clear)
    assert kept(house, new).last_used_at != long_ago


@proves("D5", part="a key's last use")
def test_a_database_that_takes_no_writes_still_lets_a_key_in(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise DatabaseError("53100: no space left on device")

    new = made(house)
    monkeypatch.setattr(actions, "Q", full)
    assert caller_of(new.clear).tenant == house.tenant.id


def test_the_lookups_that_cross_tenants_give_ids_only(house: House) -> None:
    new = made(house)
    assert tenant_of_key(new.key.id) == house.tenant.id
    assert tenant_of_key(fresh_id()) is None
    assert tenants_of_person(house.people.approver.person.id) == [house.tenant.id]
    assert tenants_of_person(fresh_id()) == []

"""Who administers the platform: what the database itself holds (R-SEC-10)."""

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.db.utils import InternalError, ProgrammingError

from orchestrator.tenants.actions.tenants import NewTenant, open_tenant, suspend_with_runs, update_tenant
from tenancy.actions import add_member, create_tenant
from tenancy.actions.first_administrator import AdministratorThere, invite_first_administrator
from tenancy.actions.people import may_get_link
from tenancy.actions.tenants import resume_tenant
from tenancy.core.errors import Forbidden
from tenancy.core.relations import TieKind
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Person, PersonTie, Tenant
from tenancy.people.platform_admins import PlatformActor, count_administrators
from tenancy.platform_models import PlatformAdmin, PlatformEntry, PlatformKey
from tests.conftest import House
from tests.factories.platform import Platform, make_platform_admin, typed
from tests.proves import proves
from tests.servers import TestServers


@pytest.fixture
def platform(house: House, servers: TestServers) -> Platform:
    """A platform administrator who is in no tenant."""
    return make_platform_admin(servers)


def rights(table: str) -> dict[str, bool]:
    """What the application's role may do with a whole table."""
    with connection.cursor() as cursor:
        found = {}
        for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"):
            cursor.execute("SELECT has_table_privilege('interlock_app', %s, %s)", (table, right))
            found[right] = cursor.fetchone()[0]
    return found


def columns(table: str) -> set[str]:
    """The columns that the application's role may change."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND has_column_privilege('interlock_app', attrelid, attnum, 'UPDATE')",
            (table,),
        )
        return {row[0] for row in cursor.fetchall()}


@proves("R-SEC-10", part="the application names no platform administrator")
def test_application_has_no_right_to_name_a_platform_administrator(servers: TestServers) -> None:
    only_read = {"SELECT": True, "INSERT": False, "UPDATE": False, "DELETE": False, "TRUNCATE": False}
    assert rights("tenancy_platformadmin") == only_read
    assert rights("tenancy_platformkey") == only_read
    assert columns("tenancy_platformadmin") == set()
    assert columns("tenancy_platformkey") == {"last_used_at"}
    assert rights("tenancy_platformentry") == only_read | {"INSERT": True}


@proves("R-SEC-10", part="the application names no platform administrator: tried")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tenancy_platformadmin (person_id) VALUES (%s)",
        "DELETE FROM tenancy_platformadmin WHERE person_id <> %s",
        "UPDATE tenancy_platformkey SET revoked_at = NULL WHERE person_id = %s",
        "UPDATE tenancy_tenant SET id = %s",
    ],
)
def test_write_of_the_application_to_the_platform_is_refused(house: House, statement: str) -> None:
    person = house.people.admin.person
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement, (person.id,))


@proves("R-SEC-10", part="the platform's log is append-only")
@pytest.mark.parametrize("statement", ["UPDATE tenancy_platformentry SET verb = 'x'", "DELETE FROM {}"])
def test_platform_log_cannot_be_rewritten_by_any_role(
    platform: Platform, superuser: psycopg.Connection, statement: str
) -> None:
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
        superuser.execute(statement.format("tenancy_platformentry").encode())


@proves("R-SEC-10", part="the database holds the highest autonomy within the tiers")
@pytest.mark.parametrize("tier", [0, 8])
def test_highest_autonomy_out_of_the_tiers_is_refused_by_the_database(house: House, tier: int) -> None:
    with pytest.raises(IntegrityError, match="tenant_autonomy_known"), transaction.atomic():
        Tenant.objects.filter(id=house.tenant.id).update(highest_autonomy_tier=tier)


@proves("R-SEC-10", part="numbers for platform administrators alone")
def test_numbers_of_administrators_are_told_to_platform_administrators_alone(
    house: House, platform: Platform
) -> None:
    ids = [house.tenant.id, house.people.other_tenant.id]
    told = count_administrators(platform.person.id, ids)
    assert tuple(told[house.tenant.id]) == (1, 1)
    assert count_administrators(house.people.admin.person.id, ids) == {}
    typed(platform.servers, "remove", platform.person.email, "--reason", "left")
    assert count_administrators(platform.person.id, ids) == {}


@proves("R-SEC-10", part="verbs ask for the right")
def test_verb_by_somebody_who_administers_no_platform_is_forbidden(house: House) -> None:
    by = PlatformActor(house.people.admin.person.id)
    slug = f"n-{fresh_id().hex[-12:]}"
    with pytest.raises(Forbidden):
        open_tenant(NewTenant(slug, "N", f"ada@{slug}.example", "Ada"), by=by)
    with pytest.raises(Forbidden):
        update_tenant(house.tenant.id, {"name": "Mine"}, by=by, reason="no")
    with pytest.raises(Forbidden):
        suspend_with_runs(house.tenant.id, by=by, reason="no")
    with pytest.raises(Forbidden):
        resume_tenant(house.tenant.id, by=by, reason="no")
    with pytest.raises(Forbidden):
        invite_first_administrator(house.tenant.id, "x@people.example", "X", by=by)
    assert not Tenant.objects.filter(slug=slug).exists()
    assert Tenant.objects.get(id=house.tenant.id).suspended_at is None


def opened(platform: Platform) -> tuple[Tenant, Person]:
    """A tenant and its first administrator, whose link the platform administrator saw."""
    slug = f"p-{fresh_id().hex[-12:]}"
    asked = NewTenant(slug, "Acme", f"ada@{slug}.example", "Ada")
    made = open_tenant(asked, by=PlatformActor(platform.person.id))
    assert made.administrator.path
    return made.tenant, made.administrator.invited.person


@proves("R-SEC-10", part="who saw the first administrator's link is related to them")
@proves("A1", part="a platform administrator who saw a link")
def test_platform_administrator_who_saw_the_link_is_related_where_they_are_a_member(
    platform: Platform,
) -> None:
    made, ada = opened(platform)
    with tenant_transaction(made.id):
        ties = set(PersonTie.objects.values_list("kind", "person_id", "by_id"))
    by = platform.person.id
    assert ties == {(TieKind.ROLE_GIVEN.value, ada.id, by), (TieKind.LINK_SEEN.value, ada.id, by)}


@proves("R-SEC-10", part="a first administrator is invited until one has signed in")
def test_first_administrator_is_invited_until_one_has_signed_in(platform: Platform) -> None:
    made, ada = opened(platform)
    by = PlatformActor(platform.person.id)
    again = invite_first_administrator(made.id, ada.email, "Ada", by=by)
    assert again.invited.person.id == ada.id
    assert again.path
    ada.set_password("correct horse battery staple")
    ada.save(update_fields=["password"])
    with pytest.raises(AdministratorThere):
        invite_first_administrator(made.id, "eve@people.example", "Eve", by=by)
    assert not Person.objects.filter(email="eve@people.example").exists()


@proves("R-SEC-10", part="no tenant's administrator takes a platform administrator's account over")
def test_link_of_a_platform_administrator_is_handed_out_by_no_tenant(
    house: House, servers: TestServers
) -> None:
    with tenant_transaction(house.tenant.id):
        person = house.people.auditor.person
        before = person.password
        assert may_get_link(house.tenant.id, person)
    typed(servers, "add", person.email)
    person.refresh_from_db()
    # Every link that was seen before is void: it was made of the password that was there.
    assert person.password != before
    assert not may_get_link(house.tenant.id, person)


@proves("R-SEC-10", part="a removed platform administrator's keys are revoked")
def test_removed_platform_administrator_has_no_right_and_no_key(platform: Platform) -> None:
    typed(platform.servers, "remove", platform.person.email, "--reason", "left us")
    assert not PlatformAdmin.objects.filter(person_id=platform.person.id).exists()
    assert not PlatformKey.objects.filter(person_id=platform.person.id, revoked_at=None).exists()
    entry = PlatformEntry.objects.filter(object=f"person:{platform.person.id}").order_by("-at")[0]
    assert (entry.verb, entry.reason, entry.person_id) == ("platform.remove", "left us", None)
    typed(platform.servers, "add", platform.person.email)
    assert not PlatformKey.objects.filter(person_id=platform.person.id, revoked_at=None).exists()


def test_line_of_the_tenants_log_names_no_principal_of_the_platform(house: House) -> None:
    create_tenant(f"q-{fresh_id().hex[-12:]}", "Q", platform=True)
    with (
        pytest.raises((IntegrityError, InternalError), match="audit_platform_unnamed"),
        tenant_transaction(house.tenant.id),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "INSERT INTO tenancy_auditentry"
            " (id, tenant_id, principal, verb, object, before, after, reason, at, platform)"
            " VALUES (gen_random_uuid(), %s, %s, 'x', 'x', '{}', '{}', '', now(), true)",
            (house.tenant.id, house.people.admin.id),
        )


def test_member_who_administers_the_platform_gets_nothing_in_the_tenant_by_it(
    house: House, platform: Platform
) -> None:
    add_member(house.tenant.id, platform.person, Role.AUDITOR)
    with tenant_transaction(house.tenant.id):
        assert not may_get_link(house.tenant.id, platform.person)

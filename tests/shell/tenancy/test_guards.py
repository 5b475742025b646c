"""What the database itself holds, read from its catalogue: no table and no function slips through."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.db import connection, transaction

from tenancy.actions import create_key, write_audit_entry
from tenancy.core.roles import Role
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry, TenantOwned
from tests.conftest import House
from tests.proves import proves
from tests.servers import TestServers

CROSSING = {
    "key_by_id": "uuid",
    "memberships_of": "uuid",
    "tenant_of_run": "uuid",
    "due_runs": "uuid",
    "abandoned_runs": "uuid",
    "deferred_runs": "uuid",
    "call_up": "uuid",
    "called_up_runs": "uuid",
    "next_run": "uuid",
    "tenants_with_letters": "uuid",
    "tenants_with_webhooks": "uuid",
    "tenants_with_notices": "uuid",
    "people_with_link": "uuid",
    "tenant_administrators": "record",
    "erase_payloads": "bigint",
    "forget_webhooks": "bigint",
}
OWNED = sorted(model._meta.db_table for model in apps.get_models() if issubclass(model, TenantOwned))


def asked(sql: str, *values: str) -> list[tuple[Any, ...]]:
    """Rows of the catalogue."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


@proves("R-SEC-1", part="closed list")
def test_only_the_closed_list_crosses_tenants(servers: TestServers) -> None:
    found = asked(
        "SELECT proname, prorettype::regtype::text FROM pg_proc"
        " WHERE prosecdef AND pronamespace = 'public'::regnamespace"
    )
    assert dict(found) == CROSSING
    assert len(found) == len(CROSSING)


@proves("R-SEC-1", part="closed list, pinned")
def test_what_crosses_tenants_is_pinned_and_the_applications_alone(servers: TestServers) -> None:
    for name, settings, owner, public, app in asked(
        "SELECT proname, proconfig, proowner::regrole::text,"
        " has_function_privilege('public', oid, 'EXECUTE'),"
        " has_function_privilege('interlock_app', oid, 'EXECUTE') FROM pg_proc"
        " WHERE prosecdef AND pronamespace = 'public'::regnamespace"
    ):
        assert isinstance(settings, list)
        assert [one for one in settings if one.startswith("search_path=")], name
        assert (owner, public, app) == ("interlock_owner", False, True), name


@proves("R-SEC-1", part="forced everywhere")
@pytest.mark.parametrize("table", OWNED)
def test_row_security_is_forced_with_one_policy_for_all(servers: TestServers, table: str) -> None:
    assert asked(
        "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", table
    ) == [(True, True)]
    ours = asked(
        "SELECT policyname, permissive, cmd, qual = with_check FROM pg_policies"
        " WHERE tablename = %s AND 'public' = ANY(roles)",
        table,
    )
    assert ours == [("of_this_tenant", "PERMISSIVE", "ALL", True)]


@proves("R-SEC-1", part="no table forgotten")
def test_every_table_with_a_tenant_is_one_of_those(servers: TestServers) -> None:
    found = asked(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped"
        " WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace"
    )
    unguarded = {name for name, guarded in found if not guarded}
    assert unguarded == set()
    assert set(OWNED) <= {name for name, _ in found}


@proves("R-SEC-1", part="append-only tables")
def test_the_application_has_no_right_to_change_what_is_append_only(servers: TestServers) -> None:
    found = asked("SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'append_only'")
    tables = [str(name) for (name,) in found]
    assert "tenancy_auditentry" in tables
    for table in tables:
        for right in ("UPDATE", "DELETE", "TRUNCATE"):
            assert asked("SELECT has_table_privilege(%s, %s)", table, right) == [(False,)], (table, right)


def test_nobody_but_the_owner_may_truncate_or_drop(servers: TestServers) -> None:
    assert not asked(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        " AND (has_table_privilege(oid, 'TRUNCATE') OR pg_get_userbyid(relowner) = current_user)"
    )


@proves("R-SEC-6", part="the application cannot rewrite")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tenancy_auditentry SET verb = 'x'",
        "DELETE FROM tenancy_auditentry",
        "TRUNCATE tenancy_auditentry",
    ],
)
def test_the_audit_log_cannot_be_rewritten(house: House, statement: str) -> None:
    with tenant_transaction(house.tenant.id):
        before = list(AuditEntry.objects.order_by("id").values_list("id", "verb"))
        assert before
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="denied"), transaction.atomic():
            raw_cursor().execute(statement)
        assert list(AuditEntry.objects.order_by("id").values_list("id", "verb")) == before


@proves("R-TOOL-1", part="a version cannot be rewritten")
@pytest.mark.parametrize("table", ["toolversion", "registryversion", "promptversion", "boundaryversion"])
@pytest.mark.parametrize("statement", ["UPDATE orchestrator_{} SET id = id", "DELETE FROM orchestrator_{}"])
def test_a_published_version_cannot_be_rewritten(house: House, table: str, statement: str) -> None:
    denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="denied")
    with tenant_transaction(house.tenant.id), denied, transaction.atomic():
        raw_cursor().execute(statement.format(table))


@proves("R-SEC-6", part="nor its owner")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tenancy_auditentry SET verb = 'x' WHERE tenant_id = %s",
        "DELETE FROM tenancy_auditentry WHERE tenant_id = %s",
        "TRUNCATE tenancy_auditentry",
    ],
)
def test_the_audit_log_is_append_only_for_every_role(
    house: House, superuser: psycopg.Connection, statement: str
) -> None:
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
        superuser.execute(statement, (house.tenant.id,) if "%s" in statement else None)


@proves("R-SEC-6", part="who, what, before, after, when")
def test_an_audit_line_says_who_what_before_after_and_when(house: House) -> None:
    admin = house.people.admin.id
    with tenant_transaction(house.tenant.id):
        write_audit_entry(
            house.tenant.id, admin, verb="ceiling.set", object="ceiling:daily", before={"cost": "5"},
            after={"cost": "7"}, reason="a busy week",
        )  # fmt: skip
        line = AuditEntry.objects.get(verb="ceiling.set")
    assert (line.principal, line.object, line.reason) == (admin, "ceiling:daily", "a busy week")
    assert (line.before, line.after) == ({"cost": "5"}, {"cost": "7"})
    assert line.at.tzinfo is not None


@proves("R-SEC-6", part="one transaction")
def test_a_change_that_is_undone_leaves_no_line(house: House) -> None:
    def undone() -> None:
        with tenant_transaction(house.tenant.id):
            write_audit_entry(house.tenant.id, None, verb="never", object="x", before={}, after={})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    with tenant_transaction(house.tenant.id):
        assert not AuditEntry.objects.filter(verb="never").exists()


@pytest.mark.parametrize(
    ("table", "column"), [("tenancy_person", "password"), ("tenancy_apikey", "secret_hash")]
)
def test_the_auditor_reads_all_but_what_proves_identity(
    servers: TestServers, table: str, column: str
) -> None:
    def may(name: str, right: str) -> bool:
        return asked("SELECT has_column_privilege('interlock_auditor', %s, %s, %s)", table, name, right) == [
            (True,)
        ]

    assert may("id", "SELECT")
    assert not may(column, "SELECT")
    assert not may("id", "UPDATE")


CHANGED = {
    "tenancy_apikey": {"expires_at", "revoked_at", "last_used_at"},
    "tenancy_membership": {"queues", "max_amount", "max_risk", "awaits_confirmation"},
    "tenancy_queue": {"description", "closed_at", "closed_by"},
    "tenancy_secret": {"revoked_at", "sealed", "renewal"},
    "tenancy_webhook": {
        "sealed", "sealed_before", "before_until", "failing_since", "off_at", "off_why", "tell_at",
        "told_at", "removed_at",
    },
    "tenancy_browsersession": {"digest", "data", "person_id", "last_seen_at", "address", "browser"},
    "tenancy_tenantsession": {"last_seen_at", "address", "browser", "ended_at", "ended_by"},
    "tenancy_knowndevice": {"last_used_at", "address", "browser"},
    "tenancy_failedsignin": {"lifted_at"},
    "tenancy_tenant": {
        "name", "time_zone", "tier", "highest_autonomy_tier", "suspended_at", "suspended_reason",
    },
    "tenancy_platformadmin": set(),
    "tenancy_platformkey": {"last_used_at"},
    "tenancy_platformanswer": {"status", "answer"},
}  # fmt: skip


@proves("R-SEC-1", part="the application changes only the columns that its verbs change")
@pytest.mark.parametrize("table", CHANGED)
def test_the_application_changes_only_the_columns_that_its_verbs_change(
    servers: TestServers, table: str
) -> None:
    found = asked(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " AND has_column_privilege(attrelid, attnum, 'UPDATE')",
        table,
    )
    assert {str(name) for (name,) in found} == CHANGED[table]


@proves("R-SEC-2", part="no key lives longer than it was made for")
@pytest.mark.parametrize("later", ["NULL", "expires_at + interval '1 second'"])
def test_no_key_lives_longer_than_it_was_made_for(house: House, later: str) -> None:
    create_key(house.tenant.id, Role.CLIENT, expires_in=timedelta(days=1))
    refused = pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="no longer")
    with tenant_transaction(house.tenant.id), refused, transaction.atomic():
        raw_cursor().execute(f"UPDATE tenancy_apikey SET expires_at = {later}".encode())


@proves("R-SEC-2", part="a key's scopes, secret and principal are never changed")
@pytest.mark.parametrize(
    "change",
    [
        "tenancy_apikey SET scopes = '{admin}'",
        "tenancy_apikey SET secret_hash = ''",
        "tenancy_apikey SET principal_id = id",
        "tenancy_membership SET role = 'admin'",
        "tenancy_membership SET person_id = id",
        "tenancy_secret SET origin = 'https://elsewhere.example'",
        "tenancy_webhook SET url = 'https://elsewhere.example'",
    ],
)
def test_a_right_a_secret_and_an_address_are_what_they_were_made_as(house: House, change: str) -> None:
    denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied")
    with tenant_transaction(house.tenant.id), denied, transaction.atomic():
        raw_cursor().execute(f"UPDATE {change}".encode())

"""A tenant's rows belong to it: without its name there is nothing, with another's neither (R-SEC-1)."""

import pytest
from django.db import DatabaseError, connection, transaction

from tenancy.context import raw_cursor, tenant
from tenancy.core.errors import OtherTenant, OutsideTenant
from tenancy.models import AuditEntry, Membership, Principal
from tests.conftest import House
from tests.proves import proves


@proves("R-SEC-1", part="application role")
def test_the_suite_works_as_the_application(house: House) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == ("interlock_app", False, False)


@proves("R-SEC-1", part="outside")
def test_a_query_outside_a_tenant_raises(house: House) -> None:
    with pytest.raises(OutsideTenant):
        Membership.objects.count()
    with pytest.raises(OutsideTenant):
        raw_cursor()


@proves("R-SEC-1", part="row security")
def test_rows_are_invisible_without_the_tenant_even_to_raw_sql(house: House) -> None:
    with transaction.atomic():
        connection.ensure_connection()
        found = connection.connection.execute("SELECT count(*) FROM tenancy_membership").fetchone()
    assert found == (0,)


@proves("Z4")
def test_another_tenants_rows_can_neither_be_seen_nor_written(house: House) -> None:
    stranger = house.people.stranger
    with tenant(house.tenant.id):
        assert not Principal.objects.filter(id=stranger.id).exists()
        with pytest.raises(DatabaseError), transaction.atomic():
            Principal.objects.create(
                tenant=house.people.other_tenant, kind="key", owner=stranger.person, label="smuggled"
            )


@proves("R-SEC-1", part="nesting")
def test_two_tenants_are_never_open_at_once(house: House) -> None:
    with tenant(house.tenant.id), pytest.raises(OtherTenant), tenant(house.people.other_tenant.id):
        pass


@proves("R-SEC-6")
def test_the_audit_log_cannot_be_rewritten(house: House) -> None:
    for statement in ("UPDATE tenancy_auditentry SET verb = 'x'", "DELETE FROM tenancy_auditentry"):
        with pytest.raises(DatabaseError), tenant(house.tenant.id):
            assert AuditEntry.objects.exists()
            raw_cursor().execute(statement)

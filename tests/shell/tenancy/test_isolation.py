"""A tenant's rows belong to it: without its name there is nothing, with another's neither (R-SEC-1)."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from tenancy.core.errors import OtherTenant, OutsideTenant
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import current_tenant, raw_cursor, tenant_transaction
from tenancy.models import ApiKey, Membership, Principal
from tests.conftest import House
from tests.proves import proves


def driver() -> "psycopg.Connection[tuple[object, ...]]":
    """What lies below Django's cursors, where the guard does not look."""
    connection.ensure_connection()
    found: psycopg.Connection[tuple[object, ...]] = connection.connection
    return found


def counted() -> tuple[object, ...] | None:
    """How many memberships raw SQL sees."""
    return driver().execute("SELECT count(*) FROM tenancy_membership").fetchone()


@proves("R-SEC-1", part="application role")
def test_the_suite_works_as_the_application(house: House) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == ("interlock_app", False, False)


@proves("R-SEC-1", part="outside")
def test_a_query_outside_a_tenant_raises(house: House) -> None:
    with pytest.raises(OutsideTenant, match="tenancy_membership"):
        Membership.objects.count()
    with pytest.raises(OutsideTenant):
        raw_cursor()


@proves("R-SEC-1", part="outside, by hand")
def test_sql_written_by_hand_raises_too(house: House) -> None:
    with connection.cursor() as cursor, pytest.raises(OutsideTenant):
        cursor.execute('DELETE FROM "public"."tenancy_apikey"')
    with connection.cursor() as cursor, pytest.raises(OutsideTenant):
        cursor.executemany("UPDATE tenancy_principal SET label = %s", [("x",)])


@proves("R-SEC-1", part="outside, in another thread")
def test_a_tenant_is_not_handed_on_to_another_thread(house: House) -> None:
    def looks() -> None:
        try:
            Membership.objects.count()
        finally:
            connection.close()

    with tenant_transaction(house.tenant.id), ThreadPoolExecutor(1) as threads, pytest.raises(OutsideTenant):
        threads.submit(looks).result()


@proves("R-SEC-1", part="row security")
def test_rows_are_invisible_without_the_tenant_even_to_raw_sql(house: House) -> None:
    with transaction.atomic():
        assert counted() == (0,)


@proves("R-SEC-1", part="row security, writing")
def test_nothing_can_be_written_without_the_tenant_even_by_raw_sql(house: House) -> None:
    person = house.people.approver.person.id
    with transaction.atomic(), pytest.raises(psycopg.errors.InsufficientPrivilege), driver().transaction():
        driver().execute(
            "INSERT INTO tenancy_principal (tenant_id, id, kind, owner_id, label, created_at)"
            " VALUES (%s, %s, 'key', %s, 'x', now())",
            (house.tenant.id, fresh_id(), person),
        )


@proves("R-SEC-1", part="nothing stays behind")
def test_a_connection_forgets_the_tenant_when_its_transaction_ends(house: House) -> None:
    with tenant_transaction(house.tenant.id):
        assert counted() != (0,)
        pid = driver().info.backend_pid
    assert current_tenant() is None
    assert driver().info.backend_pid == pid
    assert counted() == (0,)


@proves("R-SEC-1", part="nothing stays behind a failure")
def test_a_failure_ends_the_tenant_and_undoes_what_was_done(house: House) -> None:
    def undone() -> None:
        with tenant_transaction(house.tenant.id):
            Membership.objects.all().delete()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert current_tenant() is None
    with tenant_transaction(house.tenant.id):
        assert Membership.objects.exists()


@proves("Z4")
def test_another_tenants_rows_can_neither_be_seen_nor_written(house: House) -> None:
    stranger = house.people.stranger
    with tenant_transaction(house.tenant.id):
        assert not Principal.objects.filter(id=stranger.id).exists()
        assert not Membership.objects.filter(person=stranger.person).update(max_risk="destructive")
        with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
            Principal.objects.create(
                tenant=house.people.other_tenant, kind="key", owner=stranger.person, label="smuggled"
            )


@proves("Z4", part="moving")
def test_a_row_cannot_be_given_to_another_tenant(house: House) -> None:
    with tenant_transaction(house.tenant.id), pytest.raises(DatabaseError, match="permission denied"):
        Membership.objects.update(tenant=house.people.other_tenant)


@proves("Z2", part="keys")
def test_a_key_cannot_act_as_another_tenants_principal(house: House) -> None:
    with (
        tenant_transaction(house.tenant.id),
        pytest.raises(IntegrityError, match="same_tenant"),
        transaction.atomic(),
    ):
        ApiKey.objects.create(
            tenant=house.tenant, principal_id=house.people.stranger.id, label="x", role="client", scopes=[],
            secret_hash=b"\0" * 32, runs="own",
        )  # fmt: skip


@proves("Z2", part="one refusal for missing and foreign")
def test_a_foreign_id_is_refused_in_the_words_for_a_missing_one(house: House) -> None:
    said = [_refusal(house, wanted) for wanted in (house.people.stranger.id, fresh_id())]
    assert said[0] == said[1]


def _refusal(house: House, principal: UUID) -> str:
    with tenant_transaction(house.tenant.id), pytest.raises(IntegrityError) as refused, transaction.atomic():
        ApiKey.objects.create(
            tenant=house.tenant, principal_id=principal, label="x", role="client", scopes=[],
            secret_hash=b"\0" * 32,
        )  # fmt: skip
    return str(refused.value).replace(str(principal), "…")


@proves("R-SEC-1", part="nesting")
def test_two_tenants_are_never_open_at_once(house: House) -> None:
    with (
        tenant_transaction(house.tenant.id),
        pytest.raises(OtherTenant),
        tenant_transaction(house.people.other_tenant.id),
    ):
        pass


def test_the_same_tenant_inside_itself_joins(house: House) -> None:
    with tenant_transaction(house.tenant.id), tenant_transaction(house.tenant.id):
        assert current_tenant() == house.tenant.id
        assert Membership.objects.exists()


def test_a_tenant_owns_its_transaction(house: House) -> None:
    with (
        transaction.atomic(),
        pytest.raises(RuntimeError, match="durable"),
        tenant_transaction(house.tenant.id),
    ):
        pass

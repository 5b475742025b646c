"""Secrets: sealed, bound to their origin and tenant, and shown by nothing."""

from __future__ import annotations

import psycopg
import pytest
from django.test import override_settings

from tenancy.core.errors import InvalidInput, NotFound, SecretUnusable
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Secret
from tenancy.secret_store import keep_secret, reveal_secret, revoke_secret, secrets_of
from tests.conftest import House
from tests.factories.tenancy import make_tenant
from tests.proves import proves

ORIGIN = "https://api.example"
VALUE = "tok-2f7c9a51e0"


@proves("R-SEC-4", part="encrypted at rest")
def test_a_secret_is_sealed_and_no_row_or_log_line_holds_it(
    house: House, superuser: psycopg.Connection
) -> None:
    keep_secret(house.tenant.id, "crm", VALUE, origin=ORIGIN, by=None, reason="A new service.")
    assert reveal_secret(house.tenant.id, "crm", ORIGIN) == VALUE
    rows = superuser.execute(
        "SELECT sealed FROM tenancy_secret WHERE tenant_id = %s", [house.tenant.id]
    ).fetchall()
    assert len(rows) == 1
    assert VALUE.encode() not in bytes(rows[0][0])
    with tenant_transaction(house.tenant.id):
        line = AuditEntry.objects.get(verb="secret.keep")
    assert VALUE not in str((line.before, line.after, line.reason))
    assert [one.name for one in secrets_of(house.tenant.id)] == ["crm"]


@proves("P9")
def test_a_secret_goes_to_its_one_origin_alone(house: House) -> None:
    keep_secret(house.tenant.id, "crm", VALUE, origin=ORIGIN, by=None)
    for other in ("http://api.example", "https://api.example:8443", "https://evil.example", ""):
        with pytest.raises(SecretUnusable):
            reveal_secret(house.tenant.id, "crm", other)


@proves("Z4", part="secrets")
def test_another_tenants_secret_does_not_exist_and_its_row_opens_nothing_here(
    house: House, superuser: psycopg.Connection
) -> None:
    other = make_tenant()
    keep_secret(other.id, "crm", VALUE, origin=ORIGIN, by=None)
    with pytest.raises(SecretUnusable):
        reveal_secret(house.tenant.id, "crm", ORIGIN)
    superuser.execute(
        "UPDATE tenancy_secret SET tenant_id = %s WHERE tenant_id = %s", [house.tenant.id, other.id]
    )
    with pytest.raises(SecretUnusable, match="another tenant"):
        reveal_secret(house.tenant.id, "crm", ORIGIN)


def test_a_secret_is_replaced_and_revoked_and_its_old_values_are_gone(house: House) -> None:
    keep_secret(house.tenant.id, "crm", VALUE, origin=ORIGIN, by=None)
    keep_secret(house.tenant.id, "crm", "another-value", origin=ORIGIN, by=None)
    assert reveal_secret(house.tenant.id, "crm", ORIGIN) == "another-value"
    revoke_secret(house.tenant.id, "crm", by=None, reason="Leaked.")
    with pytest.raises(SecretUnusable):
        reveal_secret(house.tenant.id, "crm", ORIGIN)
    with pytest.raises(NotFound):
        revoke_secret(house.tenant.id, "crm", by=None)
    with tenant_transaction(house.tenant.id):
        assert {bytes(row.sealed) for row in Secret.objects.all()} == {b""}


def test_a_new_key_of_the_house_opens_what_the_former_sealed(house: House) -> None:
    with override_settings(SECRET_KEY="old" * 20):
        keep_secret(house.tenant.id, "crm", VALUE, origin=ORIGIN, by=None)
    with override_settings(SECRET_KEY="new" * 20, SECRET_KEY_FALLBACKS=["old" * 20]):
        assert reveal_secret(house.tenant.id, "crm", ORIGIN) == VALUE
    with override_settings(SECRET_KEY="new" * 20), pytest.raises(SecretUnusable, match="another key"):
        reveal_secret(house.tenant.id, "crm", ORIGIN)


@pytest.mark.parametrize(
    ("name", "value", "origin"),
    [
        ("Crm", VALUE, ORIGIN),
        ("", VALUE, ORIGIN),
        ("crm", "", ORIGIN),
        ("crm", "a\r\nx: y", ORIGIN),
        ("crm", VALUE, ""),
    ],
)
def test_what_cannot_be_a_secret_is_refused_by_field(
    house: House, name: str, value: str, origin: str
) -> None:
    with pytest.raises(InvalidInput):
        keep_secret(house.tenant.id, name, value, origin=origin, by=None)
    assert secrets_of(house.tenant.id) == []

"""Row-level security, rights and append-only tables of tenancy (ROLES.md)."""

from django.db import migrations

from tenancy.sql import append_only, crossing, definer, grant, row_security, same_tenant_key

CHANGING = ("tenancy_membership", "tenancy_principal", "tenancy_apikey", "tenancy_idempotencykey")


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("tenancy", "0001_initial")]
    operations = [
        *(row_security(table) for table in (*CHANGING, "tenancy_auditentry")),
        append_only("tenancy_auditentry"),
        grant("tenancy_tenant", "SELECT, INSERT, UPDATE"),
        grant("tenancy_person", "SELECT, INSERT, UPDATE"),
        *(grant(table, "SELECT, INSERT, UPDATE, DELETE") for table in CHANGING),
        grant("tenancy_auditentry", "SELECT, INSERT"),
        same_tenant_key("tenancy_apikey", "principal_id", "tenancy_principal"),
        crossing("tenancy_apikey", "SELECT"),
        crossing("tenancy_membership", "SELECT"),
        definer("key_by_id", "wanted uuid", "uuid", "SELECT tenant_id FROM tenancy_apikey WHERE id = wanted"),
        definer(
            "memberships_of", "wanted uuid", "SETOF uuid",
            "SELECT DISTINCT tenant_id FROM tenancy_membership WHERE person_id = wanted",
        ),
    ]  # fmt: skip

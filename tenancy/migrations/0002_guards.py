"""Row-level security, rights and append-only tables of tenancy (docs/operations.md)."""

from django.db import migrations

from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    create_definer_function,
    grant_table_rights,
    row_security,
    same_tenant_key,
)

OWNED = (
    "tenancy_membership", "tenancy_principal", "tenancy_apikey", "tenancy_idempotencykey", "tenancy_auditentry",
)  # fmt: skip
# The auditor sees who there is, and nothing to try passwords or keys against.
PERSON = "id, email, name, is_active, created_at"
KEY = "tenant_id, id, principal_id, label, role, scopes, created_at, expires_at, revoked_at, last_used_at"


REFUSE = """
CREATE FUNCTION interlock_refuse_unless(took boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
  IF took IS NOT TRUE THEN
    RAISE EXCEPTION 'a row did not take its change' USING ERRCODE = 'IL001';
  END IF;
END $$;
REVOKE ALL ON FUNCTION interlock_refuse_unless(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_refuse_unless(boolean) TO interlock_app;
"""


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("tenancy", "0001_initial")]
    operations = [
        migrations.RunSQL(REFUSE, "DROP FUNCTION interlock_refuse_unless(boolean);"),
        *(row_security(table) for table in OWNED),
        append_only("tenancy_auditentry"),
        grant_table_rights("tenancy_tenant", "SELECT, INSERT, UPDATE"),
        grant_table_rights("tenancy_person", "SELECT, INSERT, UPDATE", shown=PERSON),
        grant_table_rights("tenancy_membership", "SELECT, INSERT, UPDATE, DELETE"),
        grant_table_rights("tenancy_principal", "SELECT, INSERT"),
        grant_table_rights("tenancy_apikey", "SELECT, INSERT, UPDATE", shown=KEY),
        grant_table_rights("tenancy_idempotencykey", "SELECT, INSERT, UPDATE, DELETE"),
        grant_table_rights("tenancy_auditentry", "SELECT, INSERT"),
        same_tenant_key("tenancy_apikey", "principal_id", "tenancy_principal"),
        create_cross_tenant_policy("tenancy_apikey", "SELECT"),
        create_cross_tenant_policy("tenancy_membership", "SELECT"),
        create_definer_function("key_by_id", "wanted uuid", "uuid", "SELECT tenant_id FROM tenancy_apikey WHERE id = wanted"),
        create_definer_function(
            "memberships_of", "wanted uuid", "SETOF uuid",
            "SELECT DISTINCT tenant_id FROM tenancy_membership WHERE person_id = wanted",
        ),
    ]  # fmt: skip

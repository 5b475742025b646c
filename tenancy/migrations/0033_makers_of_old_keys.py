"""Whoever made a key before 0009, as the audit log knows them, was shown its secret (R-APPR-5)."""

from django.db import migrations

TABLES = ("tenancy_keymaker", "tenancy_auditentry", "tenancy_apikey", "tenancy_principal")
MAKERS = """
INSERT INTO tenancy_keymaker (id, tenant_id, principal_id, person_id, at)
SELECT gen_random_uuid(), made.tenant_id, key.principal_id, maker.owner_id, made.at
  FROM tenancy_auditentry made
  JOIN tenancy_apikey key ON key.tenant_id = made.tenant_id AND made.object = 'key:' || key.id
  JOIN tenancy_principal acting ON acting.tenant_id = made.tenant_id AND acting.id = key.principal_id
  JOIN tenancy_principal maker ON maker.tenant_id = made.tenant_id AND maker.id = made.principal
 WHERE made.verb = 'key.create' AND maker.owner_id <> acting.owner_id
ON CONFLICT DO NOTHING;
"""
# The owner's own policies are those of any tenant, so what was there is read and written without them for a
# moment. Foreign keys are checked before that ends: a table with checks to come is not altered.
FILL = "\n".join(
    [
        *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;" for table in TABLES),
        MAKERS,
        "SET CONSTRAINTS ALL IMMEDIATE;",
        *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY;" for table in TABLES),
    ]
)


class Migration(migrations.Migration):
    """The rows."""

    dependencies = [("tenancy", "0032_platform")]
    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]

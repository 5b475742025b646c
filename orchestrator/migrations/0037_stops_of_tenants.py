"""A tenant reads its own emergency stops and those of all, and writes its own alone. Outside any tenant only those
of all are read and written: the operator's word. What was put in force is lifted, and never rewritten (R-SEC-1,
R-SEC-9)."""

from django.db import migrations

TABLE = "orchestrator_emergencystop"
HERE = "nullif(current_setting('interlock.tenant', true), '')::uuid"
OWN = f"tenant_id IS NOT DISTINCT FROM {HERE}"
GUARD = f"""
ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY;
CREATE POLICY own_and_global ON {TABLE} FOR SELECT USING (tenant_id IS NULL OR tenant_id = {HERE});
CREATE POLICY own_made ON {TABLE} FOR INSERT WITH CHECK ({OWN});
CREATE POLICY own_lifted ON {TABLE} FOR UPDATE USING ({OWN}) WITH CHECK ({OWN});
REVOKE UPDATE ON {TABLE} FROM interlock_app;
GRANT UPDATE (lifted_at, lifted_by) ON {TABLE} TO interlock_app;
"""
UNGUARD = f"""
REVOKE UPDATE (lifted_at, lifted_by) ON {TABLE} FROM interlock_app;
GRANT UPDATE ON {TABLE} TO interlock_app;
DROP POLICY own_lifted ON {TABLE};
DROP POLICY own_made ON {TABLE};
DROP POLICY own_and_global ON {TABLE};
ALTER TABLE {TABLE} DISABLE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0036_within_reach"), ("tenancy", "0013_column_grants")]

    operations = [migrations.RunSQL(GUARD, UNGUARD)]

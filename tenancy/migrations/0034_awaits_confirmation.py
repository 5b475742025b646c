"""A role that waits until an administrator confirms its person (R-APPR-5). Roles from before wait for nothing."""

from django.db import migrations, models

UPDATE = "UPDATE (awaits_confirmation) ON tenancy_membership"
# As in 0032; an administrator who has yet to be confirmed waits as one does who has yet to sign in.
COUNTS = """
CREATE OR REPLACE FUNCTION tenant_administrators(asker uuid, tenants uuid[])
RETURNS TABLE (of_tenant uuid, administrators bigint, waiting bigint) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
SELECT m.tenant_id, count(*),
       count(*) FILTER (WHERE p.last_login IS NULL AND p.password LIKE '!%' {waits})
  FROM tenancy_membership m JOIN tenancy_person p ON p.id = m.person_id
 WHERE m.tenant_id = ANY ($2) AND m.role = 'admin' AND p.is_active
   AND EXISTS (SELECT 1 FROM tenancy_platformadmin a JOIN tenancy_person me ON me.id = a.person_id
                WHERE a.person_id = $1 AND me.is_active)
 GROUP BY m.tenant_id
$$;
"""


class Migration(migrations.Migration):
    """One column, which the application changes."""

    dependencies = [("tenancy", "0033_makers_of_old_keys")]
    operations = [
        migrations.AddField(
            model_name="membership",
            name="awaits_confirmation",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunSQL(COUNTS.format(waits="OR m.awaits_confirmation"), COUNTS.format(waits="")),
        migrations.RunSQL(f"GRANT {UPDATE} TO interlock_app;", f"REVOKE {UPDATE} FROM interlock_app;"),
    ]

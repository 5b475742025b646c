"""Keys are narrow (R-SEC-11): by whose runs, by workflow, by address. A client's key that was there reaches
its own runs from now on, every other key those of its tenant, as ever.

A rotation ends the key before it, so the application updates `expires_at` beside `revoked_at` and
`last_used_at`; what a key is limited to it never updates.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

# The owner's own policies are those of any tenant, so what was there is written without them for a moment.
FILL = """
ALTER TABLE tenancy_apikey NO FORCE ROW LEVEL SECURITY;
UPDATE tenancy_apikey SET runs = CASE role WHEN 'client' THEN 'own' ELSE 'tenant' END,
  scopes = CASE role WHEN 'client' THEN scopes ELSE array_append(scopes, 'inspect') END;
ALTER TABLE tenancy_apikey FORCE ROW LEVEL SECURITY;
"""
# Commas part the patterns where PostgreSQL is told of them.
FORMS = r"""
ALTER TABLE tenancy_apikey
  ADD CONSTRAINT key_workflows_formed CHECK (
    array_to_string(workflows, ',') ~ '^([a-z0-9*][a-z0-9_*-]{0,63}(,[a-z0-9*][a-z0-9_*-]{0,63})*)?$'
    AND array_position(workflows, NULL) IS NULL
    AND cardinality(string_to_array(array_to_string(workflows, ','), ',')) = cardinality(workflows)),
  ADD CONSTRAINT key_addresses_formed CHECK (
    (addresses::text[]::cidr[]) IS NOT NULL AND array_position(addresses, NULL) IS NULL),
  ADD CONSTRAINT key_limits_few CHECK (cardinality(workflows) <= 20 AND cardinality(addresses) <= 20);
GRANT SELECT (runs, workflows, addresses) ON tenancy_apikey TO interlock_auditor;
"""
LOOSE = """
ALTER TABLE tenancy_apikey DROP CONSTRAINT key_workflows_formed, DROP CONSTRAINT key_addresses_formed,
  DROP CONSTRAINT key_limits_few;
"""


class Migration(migrations.Migration):
    """Three columns and their forms."""

    dependencies = [("tenancy", "0010_process_lock")]
    operations = [
        migrations.AddField(
            model_name="apikey",
            name="runs",
            field=models.CharField(
                choices=[("own", "own"), ("tenant", "tenant")], default="tenant", max_length=8
            ),
            preserve_default=False,
        ),
        *(
            migrations.AddField(
                model_name="apikey",
                name=name,
                field=django.contrib.postgres.fields.ArrayField(
                    base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                ),
            )
            for name in ("workflows", "addresses")
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(runs__in=["own", "tenant"]), name="key_runs_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=~models.Q(scopes__contains=["admin"]) | models.Q(runs="tenant", workflows=[]),
                name="key_admin_of_all",
            ),
        ),
        migrations.RunSQL(FORMS, LOOSE),
    ]

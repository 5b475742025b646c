"""A tenant can be suspended (R-SEC-10)."""

from django.db import migrations, models

REASONED = """
ALTER TABLE tenancy_tenant ADD CONSTRAINT tenant_suspended_with_reason
  CHECK ((suspended_at IS NULL) = (suspended_reason = ''));
"""


class Migration(migrations.Migration):
    """Two columns that are set together."""

    dependencies = [("tenancy", "0012_named_queues")]
    operations = [
        migrations.AddField("tenant", "suspended_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "tenant", "suspended_reason", models.CharField(blank=True, default="", max_length=500)
        ),
        migrations.RunSQL(
            REASONED, "ALTER TABLE tenancy_tenant DROP CONSTRAINT tenant_suspended_with_reason;"
        ),
    ]

"""Leases are renewed run by run, each in its tenant: nothing that crosses tenants writes any more."""

from django.db import migrations


class Migration(migrations.Migration):
    """A function and a policy less."""

    dependencies = [("orchestrator", "0027_review_standing")]
    operations = [
        migrations.RunSQL("DROP FUNCTION renew_leases(text, double precision);", migrations.RunSQL.noop),
        migrations.RunSQL("DROP POLICY crossing_update ON orchestrator_run;", migrations.RunSQL.noop),
    ]

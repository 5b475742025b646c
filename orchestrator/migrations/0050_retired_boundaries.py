"""A version of a boundary can be retired, as one of a workflow can (R-GRAPH-11)."""

from django.db import migrations, models

TABLE = "orchestrator_boundaryversion"
RETIRES = f"""
DROP TRIGGER append_only ON {TABLE};
CREATE TRIGGER version_retires BEFORE UPDATE OR DELETE ON {TABLE}
  FOR EACH ROW EXECUTE FUNCTION orchestrator_version_retires();
GRANT UPDATE (retired_at) ON {TABLE} TO interlock_app;
"""
STANDS = f"""
REVOKE UPDATE (retired_at) ON {TABLE} FROM interlock_app;
DROP TRIGGER version_retires ON {TABLE};
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {TABLE}
  FOR EACH ROW EXECUTE FUNCTION interlock_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0048_late_reconciliation")]

    operations = [
        migrations.AddField("boundaryversion", "retired_at", models.DateTimeField(null=True)),
        migrations.RunSQL(RETIRES, STANDS),
    ]

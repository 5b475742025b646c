"""What a run has sealed is found without reading the rest of its content."""

from django.db import migrations

INDEX = """
CREATE INDEX traces_payload_sealed ON traces_payload (run_id)
 WHERE substring(body FROM 1 FOR 8) = '{"box":"'::bytea;
"""


class Migration(migrations.Migration):
    """One index."""

    dependencies = [("traces", "0005_sealing")]
    operations = [migrations.RunSQL(INDEX, "DROP INDEX traces_payload_sealed;")]

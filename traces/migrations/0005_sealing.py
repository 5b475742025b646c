"""The key of a run's sealed values stands beside its salt and is erased with it."""

from django.db import migrations, models

# As in 0002, and the key goes too.
ERASE = """
CREATE OR REPLACE FUNCTION erase_payloads(run uuid) RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
  UPDATE traces_salt SET salt = NULL, {key} erased_at = clock_timestamp()
   WHERE run_id = run AND salt IS NOT NULL
     AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid;
  WITH gone AS (
    UPDATE traces_payload SET body = NULL
     WHERE run_id = run AND body IS NOT NULL
       AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid
    RETURNING 1)
  SELECT count(*) FROM gone
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("traces", "0004_turns")]

    operations = [
        migrations.AddField(
            model_name="salt",
            name="sealing_key",
            field=models.BinaryField(max_length=500, null=True),
        ),
        migrations.AddConstraint(
            model_name="salt",
            constraint=models.CheckConstraint(
                condition=models.Q(("erased_at", None), ("sealing_key", None), _connector="OR"),
                name="salt_key_goes_with_it",
            ),
        ),
        migrations.RunSQL(ERASE.format(key="sealing_key = NULL,"), ERASE.format(key="")),
    ]

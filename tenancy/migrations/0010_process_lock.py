"""The claim of an Idempotency-Key names the lock of the process that acts (W6)."""

from django.db import migrations, models

from tenancy.db.integrity_guards import APP

# A lock of 64 bits stands in two columns there.
HELD = f"""
CREATE FUNCTION interlock_lock_is_held(number bigint) RETURNS boolean LANGUAGE sql VOLATILE
SET search_path = pg_catalog AS $$
  SELECT EXISTS (
    SELECT 1 FROM pg_locks
     WHERE locktype = 'advisory' AND objsubid = 1 AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND (classid::bigint << 32 | objid::bigint) = number)
$$;
REVOKE ALL ON FUNCTION interlock_lock_is_held(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_lock_is_held(bigint) TO {APP};
"""


class Migration(migrations.Migration):
    """One column, and one function that looks whether a lock is held."""

    dependencies = [("tenancy", "0009_relations")]
    operations = [
        migrations.AddField("idempotencykey", "process_lock", models.BigIntegerField(null=True)),
        migrations.RunSQL(HELD, "DROP FUNCTION interlock_lock_is_held(bigint);"),
    ]

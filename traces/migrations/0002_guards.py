"""The trace is append-only for everybody; only payload bytes and salts can be erased, by one function (ROLES.md)."""

from django.db import migrations

from tenancy.sql import append_only, crossing, definer, grant, grant_sequence, row_security

APPENDED = ("traces_event", "traces_record", "traces_snapshot")
ERASABLE = ("traces_payload", "traces_salt")
ONLY_ERASED = """
CREATE FUNCTION interlock_only_erased() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP <> 'UPDATE' OR current_user <> 'interlock_owner' THEN
    RAISE EXCEPTION '% of % is refused: content can only be erased', TG_OP, TG_TABLE_NAME
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
GUARD = """
CREATE TRIGGER only_erased BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION interlock_only_erased();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION interlock_append_only();
"""
ERASE = """
  UPDATE traces_salt SET salt = NULL, erased_at = clock_timestamp()
   WHERE run_id = run AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid;
  WITH gone AS (
    UPDATE traces_payload SET body = NULL
     WHERE run_id = run AND body IS NOT NULL
       AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid
    RETURNING 1)
  SELECT count(*) FROM gone
"""


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("traces", "0001_initial"), ("tenancy", "0002_guards")]
    operations = [
        *(row_security(table) for table in (*APPENDED, *ERASABLE)),
        *(append_only(table) for table in APPENDED),
        migrations.RunSQL(ONLY_ERASED, "DROP FUNCTION interlock_only_erased() CASCADE;"),
        *(migrations.RunSQL(GUARD.format(table=table), migrations.RunSQL.noop) for table in ERASABLE),
        *(grant(table, "SELECT, INSERT") for table in (*APPENDED, *ERASABLE)),
        *(grant_sequence(f"{table}_id_seq") for table in (*APPENDED, *ERASABLE)),
        *(crossing(table, command) for table in ERASABLE for command in ("SELECT", "UPDATE")),
        definer("erase_payloads", "run uuid", "bigint", ERASE, volatility="VOLATILE"),
    ]

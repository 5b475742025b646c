"""The trace is append-only for everybody; only content and salts can be erased, by one function."""

from django.db import migrations

from tenancy.db.integrity_guards import append_only, create_definer_function, grant_table_rights, row_security

APPENDED = ("traces_event", "traces_record", "traces_snapshot")
ERASABLE = ("traces_payload", "traces_salt")

# Even the function's owner may do nothing to a row but empty it: everything else must stay as it was.
ONLY_ERASED = """
CREATE FUNCTION traces_only_erased() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND current_user = 'interlock_owner' THEN
    IF TG_TABLE_NAME = 'traces_payload' THEN
      IF NEW.body IS NULL AND (NEW.tenant_id, NEW.run_id, NEW.digest, NEW.size)
         = (OLD.tenant_id, OLD.run_id, OLD.digest, OLD.size) THEN RETURN NEW; END IF;
    ELSIF NEW.salt IS NULL AND OLD.erased_at IS NULL
         AND (NEW.tenant_id, NEW.run_id) = (OLD.tenant_id, OLD.run_id) THEN RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION '% of % is refused: content can only be erased', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""
GUARD = """
CREATE TRIGGER only_erased BEFORE UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION traces_only_erased();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON {table}
  FOR EACH STATEMENT EXECUTE FUNCTION interlock_append_only();
"""
UNGUARD = "DROP TRIGGER only_erased ON {table}; DROP TRIGGER never_truncated ON {table};"

# Row-level security is forced on the owner too, so the function reaches the current tenant's rows and no others.
ERASE = """
  UPDATE traces_salt SET salt = NULL, erased_at = clock_timestamp()
   WHERE run_id = run AND salt IS NOT NULL
     AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid;
  WITH gone AS (
    UPDATE traces_payload SET body = NULL
     WHERE run_id = run AND body IS NOT NULL
       AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid
    RETURNING 1)
  SELECT count(*) FROM gone
"""

# The wheels' PostgreSQL has no lz4, and its own compression costs 0.1 ms for content of 5 KB and 0.4 ms for 20 KB
# of the commit's time to save 30-40 % of the disk: a commit is bound by the processor, so content stays as it came.
# Up to a page it stays in its row: a prompt of 8 KB would otherwise be four rows of another table and its index.
AS_IT_CAME = """
ALTER TABLE traces_payload ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE traces_payload SET (toast_tuple_target = 8160);
"""


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("traces", "0001_initial"), ("tenancy", "0002_guards")]
    operations = [
        *(row_security(table) for table in (*APPENDED, *ERASABLE)),
        *(append_only(table) for table in APPENDED),
        migrations.RunSQL(ONLY_ERASED, "DROP FUNCTION traces_only_erased();"),
        *(migrations.RunSQL(GUARD.format(table=t), UNGUARD.format(table=t)) for t in ERASABLE),
        *(grant_table_rights(table, "SELECT, INSERT") for table in (*APPENDED, *ERASABLE)),
        migrations.RunSQL(AS_IT_CAME, migrations.RunSQL.noop),
        create_definer_function("erase_payloads", "run uuid", "bigint", ERASE, volatility="VOLATILE"),
    ]

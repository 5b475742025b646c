"""The application changes only the columns that its verbs change: a key's scopes, a role, a secret's origin and an
endpoint's address are what they were made as (R-SEC-1, R-SEC-2)."""

from django.db import migrations

# By table, what is changed once the row is there.
CHANGED = {
    "tenancy_apikey": "revoked_at, last_used_at, expires_at",
    "tenancy_membership": "queues, max_amount, max_risk",
    "tenancy_secret": "revoked_at, sealed, renewal",
    "tenancy_webhook": (
        "sealed, sealed_before, before_until, failing_since, off_at, off_why, tell_at, told_at, removed_at"
    ),
}


def grant_columns(table: str, columns: str) -> migrations.RunSQL:
    """Take the right to change any column from the application, and give it that to change these."""
    return migrations.RunSQL(
        f"REVOKE UPDATE ON {table} FROM interlock_app; GRANT UPDATE ({columns}) ON {table} TO interlock_app;",
        f"REVOKE UPDATE ({columns}) ON {table} FROM interlock_app; GRANT UPDATE ON {table} TO interlock_app;",
    )


# A rotation ends the key before it sooner; nothing lets a key live longer than it was made for.
SOONER = """
CREATE FUNCTION tenancy_key_ends_sooner() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a key lives no longer than it was made for'
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER key_ends_sooner BEFORE UPDATE ON tenancy_apikey FOR EACH ROW
  WHEN (OLD.expires_at IS NOT NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > OLD.expires_at))
  EXECUTE FUNCTION tenancy_key_ends_sooner();
"""
UNDO = "DROP TRIGGER key_ends_sooner ON tenancy_apikey; DROP FUNCTION tenancy_key_ends_sooner();"


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0014_webhook_length")]

    operations = [
        *(grant_columns(table, columns) for table, columns in CHANGED.items()),
        migrations.RunSQL(SOONER, UNDO),
    ]

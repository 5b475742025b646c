"""What the application's role may do with the tables of people who sign in, and where attempts are counted.

These tables belong to no tenant: a person is one person in all of them. The auditor sees none of them: they
hold what proves a person.
"""

from __future__ import annotations

from django.db import migrations

TABLES = (
    "account_emailaddress, account_emailconfirmation, mfa_authenticator, "
    "socialaccount_socialaccount, socialaccount_socialapp, socialaccount_socialtoken"
)
CACHE = """
CREATE TABLE config_cache (
  cache_key varchar(255) PRIMARY KEY, value text NOT NULL, expires timestamp with time zone NOT NULL
);
CREATE INDEX config_cache_expires ON config_cache (expires);
GRANT SELECT, INSERT, UPDATE, DELETE ON config_cache TO interlock_app;
"""


class Migration(migrations.Migration):
    """Grants, and the cache's table."""

    dependencies = (
        ("config", "0001_grants"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    )
    operations = (
        migrations.RunSQL(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {TABLES} TO interlock_app",
            f"REVOKE ALL ON {TABLES} FROM interlock_app",
        ),
        migrations.RunSQL(CACHE, "DROP TABLE config_cache"),
    )

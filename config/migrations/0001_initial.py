"""The table of the cache, and what the application's role may do with the tables of Django and of allauth."""

from django.db import migrations

# Django's own tables are only read.
READ = "django_migrations, django_content_type, auth_permission, auth_group, auth_group_permissions"
# People who sign in belong to no tenant: a person is one person in all of them. The auditor sees none of these
# tables: they hold what proves a person.
PEOPLE = (
    "account_emailaddress, account_emailconfirmation, mfa_authenticator, socialaccount_socialaccount,"
    " socialaccount_socialapp, socialaccount_socialtoken"
)
# Attempts to sign in are counted in the cache.
CACHE = """
CREATE TABLE config_cache (
  cache_key varchar(255) PRIMARY KEY, value text NOT NULL, expires timestamp with time zone NOT NULL
);
CREATE INDEX config_cache_expires ON config_cache (expires);
"""


class Migration(migrations.Migration):
    """One table, and grants."""

    initial = True
    dependencies = (
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    )
    operations = (
        migrations.RunSQL(
            [
                CACHE,
                f"GRANT SELECT ON {READ} TO interlock_app, interlock_auditor",
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON {PEOPLE}, config_cache TO interlock_app",
            ]
        ),
    )

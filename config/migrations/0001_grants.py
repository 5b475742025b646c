"""What the application's role may read of Django's own tables; it writes none of them."""

from __future__ import annotations

from django.db import migrations

TABLES = "django_migrations, django_content_type, auth_permission, auth_group, auth_group_permissions"


class Migration(migrations.Migration):
    """Grants only."""

    initial = True
    dependencies = (
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    )
    operations = (
        migrations.RunSQL(
            f"GRANT SELECT ON {TABLES} TO interlock_app, interlock_auditor",
            f"REVOKE SELECT ON {TABLES} FROM interlock_app, interlock_auditor",
        ),
    )

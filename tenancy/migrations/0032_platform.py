"""Platform administrators, their keys and what they did (R-SEC-10)."""

import django.db.models.deletion
import django.db.models.functions.datetime
import tenancy.db.ids
from django.conf import settings
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether
from tenancy.db.integrity_guards import append_only, create_definer_function, grant_table_rights

# Who administers the platform, and by which keys, the owner of the database alone says.
RIGHTS = {
    "tenancy_platformadmin": "SELECT",
    "tenancy_platformkey": "SELECT, UPDATE (last_used_at)",
    "tenancy_platformentry": "SELECT, INSERT",
    "tenancy_platformanswer": "SELECT, INSERT, DELETE, UPDATE (status, answer)",
}
SHOWN = {
    "tenancy_platformkey": "id, person_id, label, created_at, expires_at, revoked_at, last_used_at",
    "tenancy_platformanswer": "id, api_key_id, path, status, expires_at",
}
# A tenant keeps its id, its slug and the time at which it was opened.
CHANGED = "name, time_zone, tier, highest_autonomy_tier, suspended_at, suspended_reason"
NARROW = (
    "REVOKE UPDATE ON tenancy_tenant FROM interlock_app;"
    f" GRANT UPDATE ({CHANGED}) ON tenancy_tenant TO interlock_app;"
)
WIDE = (
    f"REVOKE UPDATE ({CHANGED}) ON tenancy_tenant FROM interlock_app;"
    " GRANT UPDATE ON tenancy_tenant TO interlock_app;"
)
# How many administrators these tenants have, and how many of them have never signed in. Numbers alone, and
# for platform administrators alone. A password that cannot be used begins with "!".
COUNTS = """
SELECT m.tenant_id, count(*), count(*) FILTER (WHERE p.last_login IS NULL AND p.password LIKE '!%')
  FROM tenancy_membership m JOIN tenancy_person p ON p.id = m.person_id
 WHERE m.tenant_id = ANY ($2) AND m.role = 'admin' AND p.is_active
   AND EXISTS (SELECT 1 FROM tenancy_platformadmin a JOIN tenancy_person me ON me.id = a.person_id
                WHERE a.person_id = $1 AND me.is_active)
 GROUP BY m.tenant_id
"""


def _person(**more: object) -> models.ForeignKey:
    return models.ForeignKey(
        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL, **more
    )


class Migration(MadeTogether):
    """Four tables that belong to no tenant, and one function of the closed list."""

    dependencies = [("tenancy", "0031_sign_in_rules")]

    operations = [
        migrations.CreateModel(
            name="PlatformAdmin",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="PlatformKey",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("person", _person()),
                ("label", models.CharField(max_length=200)),
                ("secret_hash", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="PlatformEntry",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("person", _person(null=True, db_index=False)),
                ("key", models.UUIDField(null=True)),
                ("verb", models.CharField(max_length=64)),
                ("object", models.CharField(max_length=200)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                ("reason", models.CharField(blank=True, max_length=1000)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("key", None), ("person__isnull", False), _connector="OR"),
                        name="platform_key_of_person",
                    )
                ],
                "indexes": [
                    models.Index(fields=["-at", "-id"], name="platform_newest"),
                    models.Index(fields=["object", "-at"], name="platform_by_object"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlatformAnswer",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "api_key",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.platformkey",
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("path", models.CharField(max_length=255)),
                ("body_digest", models.BinaryField(max_length=32)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.TextField(blank=True, default="")),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["api_key", "path", "key"], name="platform_answer_once")
                ],
            },
        ),
        migrations.AddField("auditentry", "platform", models.BooleanField(default=False)),
        migrations.AddConstraint(
            "auditentry",
            models.CheckConstraint(
                condition=models.Q(("platform", False), ("principal", None), _connector="OR"),
                name="audit_platform_unnamed",
            ),
        ),
        migrations.AddConstraint(
            "tenant",
            models.CheckConstraint(
                condition=models.Q(("highest_autonomy_tier__range", (1, 7))), name="tenant_autonomy_known"
            ),
        ),
        *(grant_table_rights(table, rights, shown=SHOWN.get(table, "")) for table, rights in RIGHTS.items()),
        append_only("tenancy_platformentry"),
        migrations.RunSQL(NARROW, WIDE),
        create_definer_function(
            "tenant_administrators", "asker uuid, tenants uuid[]",
            "TABLE (of_tenant uuid, administrators bigint, waiting bigint)", COUNTS,
        ),
    ]  # fmt: skip

"""Tries to sign in that failed, and the browsers that are known as a person's (R-SEC-11)."""

import django.db.models.deletion
import tenancy.db.ids
from django.conf import settings
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether

GRANTS = """
GRANT SELECT, INSERT, DELETE, UPDATE (lifted_at) ON tenancy_failedsignin TO interlock_app;
GRANT SELECT, INSERT, DELETE, UPDATE (last_used_at, address, browser) ON tenancy_knowndevice TO interlock_app;
"""
NO_GRANTS = "REVOKE ALL ON tenancy_failedsignin, tenancy_knowndevice FROM interlock_app;"


class Migration(MadeTogether):
    dependencies = [("tenancy", "0016_browser_sessions")]

    operations = [
        migrations.CreateModel(
            name="FailedSignIn",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                (
                    "step",
                    models.CharField(
                        choices=[("password", "password"), ("code", "code"), ("refused", "refused")],
                        max_length=8,
                    ),
                ),
                ("account", models.BinaryField(max_length=32)),
                ("source", models.CharField(max_length=45)),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
                ("device", models.UUIDField(null=True)),
                ("lifted_at", models.DateTimeField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KnownDevice",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("digest", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField()),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="failedsignin",
            index=models.Index(fields=["account", "at"], name="failed_sign_in_by_account"),
        ),
        migrations.AddIndex(
            model_name="failedsignin",
            index=models.Index(fields=["source", "at"], name="failed_sign_in_by_source"),
        ),
        migrations.AddIndex(
            model_name="failedsignin",
            index=models.Index(fields=["at"], name="failed_sign_in_by_time"),
        ),
        migrations.AddConstraint(
            model_name="failedsignin",
            constraint=models.CheckConstraint(
                condition=models.Q(("step__in", ["password", "code", "refused"])),
                name="failed_sign_in_step_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="knowndevice",
            constraint=models.UniqueConstraint(fields=("person", "digest"), name="known_device_once"),
        ),
        migrations.RunSQL(GRANTS, NO_GRANTS),
    ]

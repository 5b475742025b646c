"""Versions of a tenant's rules of signing in: which roles need a second factor, and where it is asked for again
(R-SEC-11)."""

import django.contrib.postgres.fields
import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security


class Migration(MadeTogether):
    dependencies = [("tenancy", "0030_queues")]

    operations = [
        migrations.CreateModel(
            name="SignInRulesVersion",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                (
                    "second_factor",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), blank=True, default=list, size=None
                    ),
                ),
                (
                    "ask_again",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), blank=True, default=list, size=None
                    ),
                ),
                ("minutes", models.PositiveSmallIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("agreed_by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.AddConstraint(
            model_name="signinrulesversion",
            constraint=models.UniqueConstraint(
                fields=("tenant", "id"), name="tenancy_signinrulesversion_of_tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="signinrulesversion",
            constraint=models.UniqueConstraint(fields=("tenant", "version"), name="sign_in_rules_once"),
        ),
        migrations.AddConstraint(
            model_name="signinrulesversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("minutes__gte", 1), ("minutes__lte", 1440)),
                name="sign_in_rules_minutes_bounded",
            ),
        ),
        migrations.AddConstraint(
            model_name="signinrulesversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ask_again__contained_by", ["money", "keys", "invitations"]),
                    ("second_factor__contained_by", ["operator", "reviewer", "admin", "auditor", "client"]),
                ),
                name="sign_in_rules_known",
            ),
        ),
        row_security("tenancy_signinrulesversion"),
        grant_table_rights("tenancy_signinrulesversion", "SELECT, INSERT"),
        append_only("tenancy_signinrulesversion"),
    ]

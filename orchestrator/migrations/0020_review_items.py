"""What runs put before people for a look, and what people say of it (R-TOOL-19)."""

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key
from tenancy.db.migration_operations import MadeTogether

TABLES = ("reviewitem", "reviewword")


class Migration(MadeTogether):
    dependencies = [
        ("orchestrator", "0019_savedview"),
        ("tenancy", "0005_secret_life"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReviewItem",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("key", models.CharField(max_length=64)),
                ("queue", models.CharField(max_length=64)),
                ("severity", models.CharField(max_length=8)),
                ("subject", models.CharField(max_length=200)),
                ("reason", models.CharField(max_length=2000)),
                ("evidence", models.JSONField()),
                ("sha256", models.CharField(max_length=64)),
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
        migrations.CreateModel(
            name="ReviewWord",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=8)),
                ("finding", models.CharField(blank=True, max_length=10)),
                ("note", models.CharField(blank=True, max_length=2000)),
                ("by", models.UUIDField()),
                ("at", models.DateTimeField()),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.reviewitem",
                    ),
                ),
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
            model_name="reviewitem",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="reviewitem_tenant_id"),
        ),
        migrations.AddConstraint(
            model_name="reviewitem",
            constraint=models.UniqueConstraint(fields=("tenant", "run_id", "key"), name="reviewitem_once"),
        ),
        migrations.AddConstraint(
            model_name="reviewitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("severity__in", ["low", "medium", "high", "critical"])),
                name="reviewitem_severity_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="reviewword",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="reviewword_tenant_id"),
        ),
        migrations.AddConstraint(
            model_name="reviewword",
            constraint=models.UniqueConstraint(fields=("tenant", "item", "number"), name="reviewword_once"),
        ),
        migrations.AddConstraint(
            model_name="reviewword",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind", "answered")),
                fields=("tenant", "item"),
                name="reviewword_answered_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="reviewword",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finding", ""), ("kind__in", ["taken", "released"])),
                    models.Q(("finding__in", ["confirmed", "objected", "undecided"]), ("kind", "answered")),
                    _connector="OR",
                ),
                name="reviewword_known",
            ),
        ),
        *(row_security(f"orchestrator_{table}") for table in TABLES),
        *(append_only(f"orchestrator_{table}") for table in TABLES),
        *(grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT") for table in TABLES),
        same_tenant_key("orchestrator_reviewitem", "run_id", "orchestrator_run"),
        same_tenant_key("orchestrator_reviewword", "item_id", "orchestrator_reviewitem"),
    ]

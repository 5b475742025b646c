"""What runs propose to remember, and what was said of it (R-MEM-2)."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key
from tenancy.db.migration_operations import MadeTogether

TABLES = ("memoryproposal", "memoryverdict")


class Migration(MadeTogether):
    dependencies = [
        ("orchestrator", "0017_conflict_claims"),
        ("tenancy", "0004_webhooks"),
    ]

    operations = [
        migrations.CreateModel(
            name="MemoryProposal",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("key", models.CharField(max_length=64)),
                ("kind", models.CharField(max_length=10)),
                ("text", models.CharField(max_length=2000)),
                ("sha256", models.CharField(max_length=64)),
                ("evidence", models.JSONField()),
                ("expires_at", models.DateTimeField()),
                ("at", models.DateTimeField()),
                (
                    "search",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.contrib.postgres.search.SearchVector("text", config="simple"),
                        output_field=django.contrib.postgres.search.SearchVectorField(),
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
        migrations.CreateModel(
            name="MemoryVerdict",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("verdict", models.CharField(max_length=12)),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "proposal",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.memoryproposal",
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
        migrations.AddIndex(
            model_name="memoryproposal",
            index=django.contrib.postgres.indexes.GinIndex(fields=["search"], name="memoryproposal_words"),
        ),
        migrations.AddConstraint(
            model_name="memoryproposal",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="memoryproposal_tenant_id"),
        ),
        migrations.AddConstraint(
            model_name="memoryproposal",
            constraint=models.UniqueConstraint(
                fields=("tenant", "run_id", "key"), name="memoryproposal_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryproposal",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["episodic", "semantic", "procedural"])),
                name="memoryproposal_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryproposal",
            constraint=models.CheckConstraint(
                condition=models.Q(("expires_at__gt", models.F("at"))), name="memoryproposal_ends"
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryverdict",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="memoryverdict_tenant_id"),
        ),
        migrations.AddConstraint(
            model_name="memoryverdict",
            constraint=models.UniqueConstraint(
                fields=("tenant", "proposal", "number"), name="memoryverdict_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryverdict",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["kept", "refused", "quarantined"])),
                name="memoryverdict_known",
            ),
        ),
        *(row_security(f"orchestrator_{table}") for table in TABLES),
        *(append_only(f"orchestrator_{table}") for table in TABLES),
        *(grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT") for table in TABLES),
        same_tenant_key("orchestrator_memoryproposal", "run_id", "orchestrator_run"),
        same_tenant_key("orchestrator_memoryverdict", "proposal_id", "orchestrator_memoryproposal"),
    ]

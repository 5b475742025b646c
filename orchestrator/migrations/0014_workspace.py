"""The files of runs: each content once, every state they were in (R-TOOL-19)."""

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key
from tenancy.db.migration_operations import MadeTogether

TABLES = ("filecontent", "workspacerevision")
# What a digest names is what stands there, whoever wrote it.
TRUE = """
ALTER TABLE orchestrator_filecontent
  ADD CONSTRAINT filecontent_true CHECK (digest = encode(sha256(body), 'hex')),
  ADD CONSTRAINT filecontent_bounded CHECK (octet_length(body) <= 1048576);
"""
UNTRUE = """
ALTER TABLE orchestrator_filecontent DROP CONSTRAINT filecontent_true, DROP CONSTRAINT filecontent_bounded;
"""


class Migration(MadeTogether):
    dependencies = [
        ("orchestrator", "0013_policy"),
        ("tenancy", "0004_webhooks"),
    ]

    operations = [
        migrations.CreateModel(
            name="FileContent",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
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
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="filecontent_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "run_id", "digest"), name="filecontent_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkspaceRevision",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("number", models.PositiveIntegerField()),
                ("key", models.CharField(max_length=64)),
                ("cause", models.CharField(max_length=8)),
                ("tree", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("summary", models.CharField(blank=True, max_length=300)),
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
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="workspacerevision_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "run_id", "number"), name="workspacerevision_once"
                    ),
                    models.UniqueConstraint(
                        fields=("tenant", "run_id", "key"), name="workspacerevision_key_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cause__in", ["handed", "changed", "restored"])),
                        name="workspacerevision_cause_known",
                    ),
                ],
            },
        ),
        *(row_security(f"orchestrator_{table}") for table in TABLES),
        *(append_only(f"orchestrator_{table}") for table in TABLES),
        *(grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT") for table in TABLES),
        *(same_tenant_key(f"orchestrator_{table}", "run_id", "orchestrator_run") for table in TABLES),
        migrations.RunSQL(TRUE, UNTRUE),
    ]

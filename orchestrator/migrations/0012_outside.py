"""Ways out of the house, drafts of letters, and corpora with their passages (R-TOOL-19)."""

import django.contrib.postgres.search
import django.db.models.deletion
import tenancy.db.ids
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether


TABLES = ("outside", "maildraft", "corpusdocument", "corpuspassage")


class Migration(MadeTogether):
    dependencies = [
        ("orchestrator", "0011_circuits_told"),
        ("tenancy", "0004_webhooks"),
    ]

    operations = [
        migrations.CreateModel(
            name="CorpusDocument",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("corpus", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=120)),
                ("version", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=200)),
                ("language", models.CharField(max_length=16)),
                ("text", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("removed", models.BooleanField(default=False)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("by", models.UUIDField(null=True)),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="corpusdocument_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "corpus", "name", "version"), name="corpusdocument_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CorpusPassage",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("start", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("heading", models.CharField(blank=True, max_length=200)),
                ("text", models.TextField()),
                ("search", django.contrib.postgres.search.SearchVectorField()),
                (
                    "document",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.corpusdocument",
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
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="corpuspassage_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "document", "number"), name="corpuspassage_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MailDraft",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("key", models.CharField(max_length=64)),
                ("body", models.JSONField()),
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
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="maildraft_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "run_id", "key"), name="maildraft_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Outside",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=12)),
                ("version", models.PositiveIntegerField()),
                ("body", models.JSONField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="outside_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "kind", "version"), name="outside_once"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["web", "databases", "mail"])),
                        name="outside_kind_known",
                    ),
                ],
            },
        ),
        *(row_security(f"orchestrator_{table}") for table in TABLES),
        *(append_only(f"orchestrator_{table}") for table in TABLES),
        *(grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT") for table in TABLES),
        same_tenant_key("orchestrator_corpuspassage", "document_id", "orchestrator_corpusdocument"),
        migrations.RunSQL(
            "CREATE INDEX corpuspassage_words ON orchestrator_corpuspassage USING gin (search)",
            "DROP INDEX corpuspassage_words",
        ),
    ]

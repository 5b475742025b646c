"""Tool servers, what they said of their tools, and the private places that may be reached (R-TOOL-21)."""

import django.db.models.deletion
from django.db import migrations, models

import tenancy.db.ids
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key
from tenancy.db.migration_operations import MadeTogether

TABLES = ("toolserver", "tooldefinition", "servertool", "privateplaces")
STAYS = """
CREATE FUNCTION orchestrator_server_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a tool server keeps its name and its address' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER server_stays BEFORE UPDATE ON orchestrator_toolserver FOR EACH ROW
  WHEN (NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.slug <> OLD.slug OR NEW.kind <> OLD.kind
        OR NEW.address <> OLD.address OR NEW.origin <> OLD.origin OR OLD.removed_at IS NOT NULL)
  EXECUTE FUNCTION orchestrator_server_stays();
"""
UNDO = "DROP TRIGGER server_stays ON orchestrator_toolserver; DROP FUNCTION orchestrator_server_stays();"


class Migration(MadeTogether):
    dependencies = [
        ("orchestrator", "0008_list_indexes"),
        ("tenancy", "0003_secret"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolServer",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("slug", models.CharField(max_length=32)),
                ("kind", models.CharField(max_length=8)),
                ("address", models.CharField(max_length=2000)),
                ("origin", models.CharField(max_length=300)),
                ("secret", models.CharField(blank=True, max_length=64)),
                ("secret_header", models.CharField(blank=True, max_length=64)),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("looked_at", models.DateTimeField(null=True)),
                ("protocol", models.CharField(blank=True, max_length=20)),
                ("named", models.CharField(blank=True, max_length=120)),
                ("fault", models.CharField(blank=True, max_length=600)),
                ("removed_at", models.DateTimeField(null=True)),
                ("removed_by", models.UUIDField(null=True)),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="toolserver_tenant_id"),
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at__isnull", True)),
                        fields=("tenant", "slug"),
                        name="toolserver_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["http", "stdio"])), name="toolserver_kind_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolDefinition",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("tool", models.CharField(max_length=128)),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("seen_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.toolserver",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tooldefinition_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "server", "tool", "digest"), name="tooldefinition_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ServerTool",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("tool", models.CharField(max_length=128)),
                ("name", models.CharField(blank=True, max_length=64)),
                ("state", models.CharField(max_length=12)),
                ("seen", models.CharField(blank=True, max_length=64)),
                ("admitted", models.CharField(blank=True, max_length=64)),
                ("why", models.CharField(blank=True, max_length=500)),
                ("since", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.toolserver",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="servertool_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "server", "tool"), name="servertool_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["quarantined", "admitted", "gone", "refused"])),
                        name="servertool_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "admitted"), _negated=True),
                            models.Q(
                                ("admitted", models.F("seen")),
                                models.Q(("admitted", ""), _negated=True),
                                models.Q(("name", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="servertool_admitted_as_seen",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PrivatePlaces",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("places", models.JSONField()),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="privateplaces_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "version"), name="privateplaces_once"),
                ],
            },
        ),
        *(row_security(f"orchestrator_{table}") for table in TABLES),
        *(append_only(f"orchestrator_{table}") for table in ("tooldefinition", "privateplaces")),
        *(
            grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT")
            for table in ("tooldefinition", "privateplaces")
        ),
        *(
            grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT, UPDATE")
            for table in ("toolserver", "servertool")
        ),
        *(
            same_tenant_key(f"orchestrator_{table}", "server_id", "orchestrator_toolserver")
            for table in ("tooldefinition", "servertool")
        ),
        migrations.RunSQL(STAYS, UNDO),
    ]

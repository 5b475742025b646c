"""Changes that make a tool less guarded wait for a second person (R-TOOL-4)."""

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import grant_table_rights, row_security

STAYS = """
CREATE TRIGGER proposal_stays BEFORE UPDATE ON orchestrator_toolproposal FOR EACH ROW
  WHEN (OLD.status <> 'open' OR NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.kind <> OLD.kind
        OR NEW.tool <> OLD.tool OR NEW.tag <> OLD.tag OR NEW.body <> OLD.body OR NEW.weaker <> OLD.weaker
        OR NEW.reason <> OLD.reason OR NEW.by <> OLD.by OR NEW.owner <> OLD.owner OR NEW.at <> OLD.at)
  EXECUTE FUNCTION orchestrator_proposal_stays();
"""
UNDO = "DROP TRIGGER proposal_stays ON orchestrator_toolproposal;"


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0021_memory_trust"),
        ("tenancy", "0005_secret_life"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolProposal",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=8)),
                ("tool", models.CharField(max_length=64)),
                ("tag", models.CharField(blank=True, default="", max_length=40)),
                ("body", models.JSONField()),
                ("weaker", models.JSONField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("status", models.CharField(default="open", max_length=10)),
                ("settled_by", models.UUIDField(null=True)),
                ("settled_owner", models.UUIDField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
                ("settled_reason", models.CharField(blank=True, default="", max_length=500)),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="toolproposal_tenant_id"),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "open")),
                        fields=("tenant", "tool"),
                        name="toolproposal_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["change", "admit", "declare"])),
                        name="toolproposal_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["open", "agreed", "refused", "withdrawn"])),
                        name="toolproposal_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "agreed"), _negated=True),
                            models.Q(
                                ("settled_by__isnull", False),
                                ("settled_owner__isnull", False),
                                models.Q(("settled_by", models.F("by")), _negated=True),
                                models.Q(("settled_owner", models.F("owner")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="toolproposal_second_person",
                    ),
                ],
            },
        ),
        row_security("orchestrator_toolproposal"),
        grant_table_rights("orchestrator_toolproposal", "SELECT, INSERT, UPDATE"),
        migrations.RunSQL(STAYS, UNDO),
    ]

"""Policies by origin, in versions, and weaker ones that wait for a second person (R-TOOL-17)."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

import tenancy.db.ids
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security
from tenancy.db.migration_operations import MadeTogether

STAYS = """
CREATE FUNCTION orchestrator_proposal_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a proposal is settled once and says what it said' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER proposal_stays BEFORE UPDATE ON orchestrator_policyproposal FOR EACH ROW
  WHEN (OLD.status <> 'open' OR NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.before <> OLD.before
        OR NEW.digest <> OLD.digest OR NEW.body <> OLD.body OR NEW.reason <> OLD.reason OR NEW.by <> OLD.by
        OR NEW.owner <> OLD.owner OR NEW.at <> OLD.at)
  EXECUTE FUNCTION orchestrator_proposal_stays();
"""
UNDO = """
DROP TRIGGER proposal_stays ON orchestrator_policyproposal; DROP FUNCTION orchestrator_proposal_stays();
"""
SCOPES = ["global", "tenant", "workflow", "tool", "risk"]


def _tenant() -> tuple[str, models.Field]:
    key = models.ForeignKey(
        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenancy.tenant"
    )
    return ("tenant", key)


def _id() -> tuple[str, models.Field]:
    return ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False))


class Migration(MadeTogether):
    dependencies = [("orchestrator", "0012_outside")]

    operations = [
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                _id(),
                ("version", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("loosens", models.BooleanField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("owner", models.UUIDField(null=True)),
                ("agreed_by", models.UUIDField(null=True)),
                ("agreed_owner", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
                _tenant(),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "version"), name="policyversion_once"),
                    models.UniqueConstraint(fields=("tenant", "id"), name="policyversion_tenant_id"),
                    models.CheckConstraint(
                        condition=Q(loosens=False)
                        | (
                            Q(
                                by__isnull=False,
                                owner__isnull=False,
                                agreed_by__isnull=False,
                                agreed_owner__isnull=False,
                            )
                            & ~Q(agreed_by=F("by"))
                            & ~Q(agreed_owner=F("owner"))
                        ),
                        name="policyversion_second_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyProposal",
            fields=[
                _id(),
                ("before", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("status", models.CharField(default="open", max_length=10)),
                ("settled_by", models.UUIDField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
                ("settled_reason", models.CharField(blank=True, default="", max_length=500)),
                _tenant(),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="policyproposal_tenant_id"),
                    models.UniqueConstraint(
                        condition=Q(status="open"), fields=("tenant",), name="policyproposal_one_open"
                    ),
                    models.CheckConstraint(
                        condition=Q(status__in=["open", "agreed", "refused", "withdrawn", "outdated"]),
                        name="policyproposal_status_known",
                    ),
                ],
            },
        ),
        migrations.RemoveConstraint(model_name="emergencystop", name="stop_scope_known"),
        migrations.AddConstraint(
            model_name="emergencystop",
            constraint=models.CheckConstraint(
                condition=Q(scope__in=[*SCOPES, "policy"]), name="stop_scope_known"
            ),
        ),
        *(row_security(f"orchestrator_{table}") for table in ("policyversion", "policyproposal")),
        append_only("orchestrator_policyversion"),
        grant_table_rights("orchestrator_policyversion", "SELECT, INSERT"),
        grant_table_rights("orchestrator_policyproposal", "SELECT, INSERT, UPDATE"),
        migrations.RunSQL(STAYS, UNDO),
    ]

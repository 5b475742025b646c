"""Circuits in front of tools and providers: one row for all workers (R-BUDGET-13)."""

from django.db import migrations, models
from django.db.models import Q

from tenancy.db.integrity_guards import grant_table_rights

OURS = "tenant_id IS NULL OR tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid"
APART = f"""
ALTER TABLE orchestrator_circuitrow ENABLE ROW LEVEL SECURITY;
ALTER TABLE orchestrator_circuitrow FORCE ROW LEVEL SECURITY;
CREATE POLICY of_this_tenant_or_nobody ON orchestrator_circuitrow USING ({OURS}) WITH CHECK ({OURS});
"""


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0005_raised_risk")]

    operations = [
        migrations.CreateModel(
            name="CircuitRow",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField(null=True)),
                ("kind", models.CharField(max_length=8)),
                ("subject", models.CharField(max_length=300)),
                ("state", models.CharField(max_length=10)),
                ("failures", models.IntegerField()),
                ("changes", models.BigIntegerField()),
                ("until", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, max_length=64)),
                ("since", models.DateTimeField()),
                ("failed_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(kind__in=["tool", "model"]), name="circuit_kind_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(state="closed", until__isnull=True)
                        | Q(state__in=["open", "half_open"], until__isnull=False, failures__gt=0),
                        name="circuit_state_whole",
                    ),
                    models.CheckConstraint(
                        condition=Q(kind="model", tenant_id__isnull=True)
                        | Q(kind="tool", tenant_id__isnull=False),
                        name="circuit_of_whom",
                    ),
                ],
                "indexes": [
                    models.Index(fields=["tenant_id"], condition=Q(failures__gt=0), name="circuit_in_trouble")
                ],
            },
        ),
        migrations.RunSQL(APART, "DROP POLICY of_this_tenant_or_nobody ON orchestrator_circuitrow;"),
        grant_table_rights("orchestrator_circuitrow", "SELECT, INSERT, UPDATE"),
    ]

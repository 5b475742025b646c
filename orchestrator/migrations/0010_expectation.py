"""What is known of a workflow's runs before the next one begins (R-BUDGET-4)."""

import django.db.models.deletion
from django.db import migrations, models

import tenancy.db.ids
from tenancy.db.integrity_guards import grant_table_rights, row_security


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0009_tool_servers")]

    operations = [
        migrations.CreateModel(
            name="Expectation",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=64)),
                ("graph", models.CharField(max_length=64)),
                ("lived", models.JSONField()),
                ("expected", models.JSONField()),
                ("learnt_at", models.DateTimeField()),
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
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="orchestrator_expectation_of_tenant"
                    ),
                    models.UniqueConstraint(fields=("tenant", "graph"), name="expectation_one_a_graph"),
                ],
            },
        ),
        row_security("orchestrator_expectation"),
        grant_table_rights("orchestrator_expectation", "SELECT, INSERT, UPDATE"),
    ]

"""A second letter about an alert, for what was refused after it; flags of figures that drift (R-BUDGET-10,
14)."""

import budgets.models
import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import grant_table_rights, row_security

FLAG = "budgets_driftflag"
ONCE = "budgets_mail_once_a_person"


class Migration(migrations.Migration):
    dependencies = [
        ("budgets", "0007_lanes"),
        ("tenancy", "0007_notices"),
    ]

    operations = [
        migrations.AddField("alertmail", "refused", models.BooleanField(default=False, db_default=False)),
        migrations.RemoveConstraint("alertmail", ONCE),
        migrations.AddConstraint(
            "alertmail",
            models.UniqueConstraint(fields=("tenant", "alert", "person_id", "refused"), name=ONCE),
        ),
        migrations.CreateModel(
            name="DriftFlag",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=64)),
                ("metric", models.CharField(max_length=8)),
                ("was", budgets.models.Amount(decimal_places=12, max_digits=30)),
                ("is_now", budgets.models.Amount(decimal_places=12, max_digits=30)),
                ("runs", models.PositiveIntegerField()),
                ("told", models.BooleanField()),
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
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
                "indexes": [
                    models.Index(fields=["tenant", "workflow", "metric", "-at"], name="budgets_drift_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_driftflag_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("tenant", "workflow", "metric"),
                        name="budgets_drift_flag_once",
                    ),
                ],
            },
        ),
        row_security(FLAG),
        grant_table_rights(FLAG, "SELECT, INSERT, UPDATE (ended_at)"),
    ]

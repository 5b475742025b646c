"""What runs are writing to at the moment: one holder a key (G10)."""

import django.db.models.deletion
from django.db import migrations, models

import tenancy.db.ids
from tenancy.db.integrity_guards import grant_table_rights, row_security


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0016_look_permit")]

    operations = [
        migrations.CreateModel(
            name="ConflictClaim",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=200)),
                ("run_id", models.UUIDField()),
                ("effect", models.CharField(max_length=32)),
                ("until", models.DateTimeField()),
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
                        fields=("tenant", "id"), name="orchestrator_conflictclaim_of_tenant"
                    ),
                    models.UniqueConstraint(fields=("tenant", "key"), name="conflictclaim_one_holder"),
                ],
            },
        ),
        row_security("orchestrator_conflictclaim"),
        grant_table_rights("orchestrator_conflictclaim", "SELECT, INSERT, UPDATE"),
    ]

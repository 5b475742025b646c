"""Views of the run list that people keep (R-UI-2)."""

import django.db.models.deletion
import django.db.models.functions.text
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import grant_table_rights, row_security, same_tenant_key

TABLE = "orchestrator_savedview"


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0018_memory"),
        ("tenancy", "0005_secret_life"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("principal", models.UUIDField()),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=2000)),
                ("first", models.BooleanField(default=False)),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="savedview_tenant_id"),
                    models.UniqueConstraint(
                        models.F("tenant"),
                        models.F("principal"),
                        django.db.models.functions.text.Lower("name"),
                        name="savedview_name_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("first", True)),
                        fields=("tenant", "principal"),
                        name="savedview_one_first",
                    ),
                ],
            },
        ),
        row_security(TABLE),
        grant_table_rights(TABLE, "SELECT, INSERT, UPDATE, DELETE"),
        same_tenant_key(TABLE, "principal", "tenancy_principal"),
    ]

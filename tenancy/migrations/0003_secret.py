"""Secrets, sealed; the auditor sees that there are some (R-SEC-4)."""

import django.db.models.deletion
from django.db import migrations, models

import tenancy.db.ids
from tenancy.db.integrity_guards import grant_table_rights, row_security

SHOWN = "tenant_id, id, name, origin, created_by, created_at, revoked_at"


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0002_guards")]

    operations = [
        migrations.CreateModel(
            name="Secret",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64)),
                ("origin", models.CharField(max_length=300)),
                ("sealed", models.BinaryField()),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
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
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_secret_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at__isnull", True)),
                        fields=("tenant", "name"),
                        name="secret_once",
                    ),
                ],
            },
        ),
        row_security("tenancy_secret"),
        grant_table_rights("tenancy_secret", "SELECT, INSERT, UPDATE", shown=SHOWN),
    ]

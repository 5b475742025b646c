"""The trace's tables."""

import django.db.models.deletion
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether

TENANT = models.ForeignKey(
    db_constraint=False,
    db_index=False,
    on_delete=django.db.models.deletion.PROTECT,
    related_name="+",
    to="tenancy.tenant",
)


def key(*columns: str) -> models.CompositePrimaryKey:
    """The place of a row, led by its tenant."""
    return models.CompositePrimaryKey(
        "tenant_id", "run_id", *columns, blank=True, editable=False, primary_key=True, serialize=False
    )


class Migration(MadeTogether):
    """Five tables, each keyed by tenant, run and place."""

    initial = True
    dependencies = [("tenancy", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Event",
            fields=[
                ("run_id", models.UUIDField()),
                ("pk", key("seq")),
                ("seq", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("phase", models.PositiveSmallIntegerField()),
                ("kind", models.CharField(max_length=32)),
                ("actor", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("previous", models.BinaryField(max_length=32)),
                ("hash", models.BinaryField(max_length=32)),
                ("tenant", TENANT.clone()),
            ],
        ),
        migrations.CreateModel(
            name="Record",
            fields=[
                ("run_id", models.UUIDField()),
                ("pk", key("number")),
                ("number", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("phase", models.PositiveSmallIntegerField()),
                ("source", models.CharField(max_length=64)),
                ("outcome", models.CharField(max_length=64)),
                ("target", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("previous", models.BinaryField(max_length=32)),
                ("hash", models.BinaryField(max_length=32)),
                ("tenant", TENANT.clone()),
            ],
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                ("run_id", models.UUIDField()),
                ("pk", key("number")),
                ("number", models.BigIntegerField()),
                ("state", models.BinaryField()),
                ("digest", models.BinaryField(max_length=32)),
                ("tenant", TENANT.clone()),
            ],
        ),
        migrations.CreateModel(
            name="Payload",
            fields=[
                ("run_id", models.UUIDField()),
                ("pk", key("digest")),
                ("digest", models.BinaryField(max_length=32)),
                ("body", models.BinaryField(null=True)),
                ("size", models.BigIntegerField()),
                ("tenant", TENANT.clone()),
            ],
        ),
        migrations.CreateModel(
            name="Salt",
            fields=[
                ("run_id", models.UUIDField()),
                ("pk", key()),
                ("salt", models.BinaryField(max_length=32, null=True)),
                ("erased_at", models.DateTimeField(null=True)),
                ("tenant", TENANT.clone()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(salt=None, erased_at__isnull=False)
                        | models.Q(salt__isnull=False, erased_at=None),
                        name="salt_or_erased",
                    )
                ],
            },
        ),
    ]

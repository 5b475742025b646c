"""Tables of the trace: events, records, snapshots, content and salts."""

import django.db.models.deletion
from django.db import migrations, models

from tenancy.db.migration_operations import MadeTogether


class Migration(MadeTogether):
    initial = True

    dependencies = [
        ("tenancy", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Event",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("run_id", models.UUIDField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "run_id",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("phase", models.PositiveSmallIntegerField()),
                ("kind", models.CharField(max_length=32)),
                ("actor", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("previous", models.BinaryField(max_length=32)),
                ("hash", models.BinaryField(max_length=32)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("kind", "failure_committed")),
                        fields=["tenant", "run_id"],
                        name="event_failures",
                    ),
                    models.Index(
                        condition=models.Q(("kind__in", ("run_started", "run_paused", "run_resumed"))),
                        fields=["tenant", "run_id", "seq"],
                        name="event_turns",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Payload",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("run_id", models.UUIDField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "run_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("digest", models.BinaryField(max_length=32)),
                ("body", models.BinaryField(null=True)),
                ("size", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="Record",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("run_id", models.UUIDField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "run_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("phase", models.PositiveSmallIntegerField()),
                ("source", models.CharField(max_length=64)),
                ("outcome", models.CharField(max_length=64)),
                ("target", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("previous", models.BinaryField(max_length=32)),
                ("hash", models.BinaryField(max_length=32)),
            ],
        ),
        migrations.CreateModel(
            name="Salt",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("run_id", models.UUIDField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id", "run_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("salt", models.BinaryField(max_length=32, null=True)),
                ("sealing_key", models.BinaryField(max_length=500, null=True)),
                ("erased_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("erased_at__isnull", False), ("salt", None)),
                            models.Q(("erased_at", None), ("salt__isnull", False)),
                            _connector="OR",
                        ),
                        name="salt_or_erased",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("erased_at", None), ("sealing_key", None), _connector="OR"),
                        name="salt_key_goes_with_it",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("run_id", models.UUIDField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "run_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.BigIntegerField()),
                ("state", models.BinaryField()),
                ("digest", models.BinaryField(max_length=32)),
            ],
        ),
    ]

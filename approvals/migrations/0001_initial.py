"""Tables of requests, decisions and what people do with requests."""

import django.contrib.postgres.fields
import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models

from tenancy.db.migration_operations import MadeTogether


class Migration(MadeTogether):
    initial = True

    dependencies = [
        ("tenancy", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="GrantUse",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("effect_id", models.CharField(max_length=32)),
                ("action_digest", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_grantuse_of_tenant")
                ],
            },
        ),
        migrations.CreateModel(
            name="Request",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("call_id", models.CharField(max_length=32)),
                ("kind", models.CharField(max_length=16)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("decided", "decided"),
                            ("expired", "expired"),
                            ("withdrawn", "withdrawn"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("packet", models.BinaryField()),
                ("packet_digest", models.CharField(max_length=64)),
                ("action_digest", models.CharField(blank=True, max_length=64)),
                ("tool", models.CharField(blank=True, max_length=64)),
                ("queue", models.CharField(max_length=64)),
                ("quorum", models.PositiveSmallIntegerField(default=1)),
                ("risk", models.CharField(max_length=16)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("has_amount", models.BooleanField(default=False)),
                ("sealed", models.BooleanField(db_default=False, default=False)),
                ("answer_schema", models.JSONField(null=True)),
                ("submitter", models.UUIDField()),
                ("submitter_owner", models.UUIDField()),
                (
                    "retriers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), default=list, size=None
                    ),
                ),
                (
                    "retrier_owners",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), default=list, size=None
                    ),
                ),
                ("grant_seconds", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
                ("outcome", models.CharField(blank=True, max_length=16)),
                ("granted_action", models.CharField(blank=True, max_length=64)),
                ("ended_because", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "status", "created_at"], name="request_inbox"),
                    models.Index(fields=["tenant", "run_id"], name="request_by_run"),
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["tenant", "expires_at", "id"],
                        name="request_waiting",
                    ),
                    models.Index(
                        condition=models.Q(("status", "pending"), _negated=True),
                        fields=["tenant", "-settled_at", "-id"],
                        name="request_settled",
                    ),
                    models.Index(fields=["tenant", "tool", "-settled_at"], name="request_by_tool"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_request_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "pending")),
                        fields=("tenant", "run_id", "call_id"),
                        name="request_one_open_per_call",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("settled_at", None), ("status", "pending")),
                            models.Q(
                                models.Q(("status", "pending"), _negated=True), ("settled_at__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="request_settled_has_a_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "request",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="approvals.request",
                    ),
                ),
                ("principal", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("role", models.CharField(max_length=64)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("approve", "approve"),
                            ("edit", "edit"),
                            ("reject", "reject"),
                            ("revise", "revise"),
                            ("extend", "extend"),
                            ("answer", "answer"),
                            ("happened", "happened"),
                            ("not_happened", "not_happened"),
                            ("cancel", "cancel"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("arguments", models.BinaryField(null=True)),
                ("answer", models.BinaryField(null=True)),
                ("quorum", models.PositiveSmallIntegerField(null=True)),
                ("packet_digest", models.CharField(max_length=64)),
                ("previous", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("digest", models.CharField(max_length=64)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_decision_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "request", "owner"), name="decision_once_a_person"
                    ),
                    models.UniqueConstraint(
                        fields=("tenant", "request", "previous"), name="decision_one_line"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Deferral",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "request",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deferrals",
                        to="approvals.request",
                    ),
                ),
                ("run_id", models.UUIDField()),
                ("principal", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("kind", models.CharField(max_length=16)),
                ("reason", models.TextField(blank=True)),
                ("arguments", models.BinaryField(null=True)),
                ("packet_digest", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("effective_at", models.DateTimeField()),
                (
                    "fate",
                    models.CharField(
                        choices=[
                            ("stands", "stands"),
                            ("taken", "taken"),
                            ("undone", "undone"),
                            ("lapsed", "lapsed"),
                        ],
                        default="stands",
                        max_length=8,
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.UUIDField(null=True)),
                ("ended_because", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "request", "at"], name="deferral_of_request"),
                    models.Index(fields=["tenant", "at"], name="deferral_lately"),
                    models.Index(fields=["tenant", "ended_at"], name="deferral_ended_lately"),
                    models.Index(
                        condition=models.Q(("fate", "stands")), fields=["effective_at"], name="deferral_due"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_deferral_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("fate", "stands")),
                        fields=("tenant", "request"),
                        name="deferral_one_stands",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("fate", "stands")),
                            models.Q(
                                models.Q(("fate", "stands"), _negated=True), ("ended_at__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="deferral_ended_has_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("fate__in", ["stands", "taken", "undone", "lapsed"])),
                        name="deferral_fate_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Handling",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "request",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="handlings",
                        to="approvals.request",
                    ),
                ),
                ("principal", models.UUIDField()),
                ("owner", models.UUIDField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("claim", "claim"),
                            ("assign", "assign"),
                            ("release", "release"),
                            ("snooze", "snooze"),
                            ("wake", "wake"),
                            ("comment", "comment"),
                            ("reveal", "reveal"),
                        ],
                        max_length=8,
                    ),
                ),
                ("to", models.UUIDField(null=True)),
                ("until", models.DateTimeField(null=True)),
                ("text", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "request", "at"], name="handling_of_request"),
                    models.Index(fields=["tenant", "at"], name="handling_lately"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_handling_of_tenant"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ("claim", "assign")), ("to__isnull", False)),
                            models.Q(
                                models.Q(("kind__in", ("claim", "assign")), _negated=True), ("to", None)
                            ),
                            _connector="OR",
                        ),
                        name="handling_to_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "snooze"), ("until__isnull", False)),
                            models.Q(models.Q(("kind", "snooze"), _negated=True), ("until", None)),
                            _connector="OR",
                        ),
                        name="handling_until_some_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UndoWindow",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("seconds", models.PositiveSmallIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_undowindow_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "version"), name="undowindow_once"),
                    models.CheckConstraint(
                        condition=models.Q(("seconds__lte", 10)), name="undowindow_at_most_ten"
                    ),
                ],
            },
        ),
    ]

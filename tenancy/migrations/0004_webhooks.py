"""Endpoints that are told of what happens, the messages, their deliveries and each attempt (R-API-6)."""

import django.contrib.postgres.fields
import django.db.models.deletion
import tenancy.db.ids
from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    create_definer_function,
    grant_table_rights,
    row_security,
    same_tenant_key,
)
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether


TABLES = {
    "webhook": "SELECT, INSERT, UPDATE",
    "webhookmessage": "SELECT, INSERT",
    "webhookdelivery": "SELECT, INSERT, UPDATE",
    "webhookattempt": "SELECT, INSERT",
}
# The auditor sees every endpoint, and no sealed secret.
SHOWN = {
    "webhook": (
        "tenant_id, id, name, url, origin, events, before_until, created_by, created_at, failing_since,"
        " off_at, off_why, tell_at, told_at, removed_at"
    )
}
DUE = """
SELECT tenant_id FROM (
  SELECT d.tenant_id, d.next_at AS at
    FROM tenancy_webhookdelivery d JOIN tenancy_webhook w ON w.id = d.webhook_id
   WHERE d.state = 'waiting' AND d.next_at <= clock_timestamp() AND w.off_at IS NULL AND w.removed_at IS NULL
  UNION ALL
  SELECT tenant_id, tell_at FROM tenancy_webhook
   WHERE off_at IS NOT NULL AND told_at IS NULL AND tell_at <= clock_timestamp() AND removed_at IS NULL
) AS due GROUP BY tenant_id ORDER BY min(at) LIMIT least(n, 1000)
"""


class Migration(MadeTogether):
    dependencies = [
        ("tenancy", "0003_secret"),
    ]

    operations = [
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=80)),
                ("url", models.CharField(max_length=2000)),
                ("origin", models.CharField(max_length=300)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), size=None
                    ),
                ),
                ("sealed", models.BinaryField()),
                ("sealed_before", models.BinaryField(null=True)),
                ("before_until", models.DateTimeField(null=True)),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("failing_since", models.DateTimeField(null=True)),
                ("off_at", models.DateTimeField(null=True)),
                ("off_why", models.CharField(blank=True, default="", max_length=300)),
                ("tell_at", models.DateTimeField(null=True)),
                ("told_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhook_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at", None)),
                        fields=("tenant", "name"),
                        name="webhook_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("delivered", "delivered"), ("failed", "failed")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                (
                    "webhook",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.webhook",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="WebhookAttempt",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("milliseconds", models.PositiveIntegerField()),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, default="", max_length=300)),
                ("said", models.CharField(blank=True, default="", max_length=300)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                (
                    "delivery",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.webhookdelivery",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhookattempt_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "delivery", "number"), name="webhook_attempt_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookMessage",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=100)),
                ("body", models.BinaryField()),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhookmessage_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "kind", "subject"), name="webhook_message_once"
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="webhookdelivery",
            name="message",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="tenancy.webhookmessage",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "waiting")), fields=["next_at"], name="webhook_due"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["tenant", "webhook", "-created_at"], name="webhook_log"),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                fields=("tenant", "id"), name="tenancy_webhookdelivery_of_tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                fields=("tenant", "webhook", "message"), name="webhook_delivery_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["waiting", "delivered", "failed"])),
                name="webhook_state_known",
            ),
        ),
        *(row_security(f"tenancy_{table}") for table in TABLES),
        *(
            grant_table_rights(f"tenancy_{table}", rights, shown=SHOWN.get(table, ""))
            for table, rights in TABLES.items()
        ),
        append_only("tenancy_webhookmessage"),
        append_only("tenancy_webhookattempt"),
        same_tenant_key("tenancy_webhookdelivery", "webhook_id", "tenancy_webhook"),
        same_tenant_key("tenancy_webhookdelivery", "message_id", "tenancy_webhookmessage"),
        same_tenant_key("tenancy_webhookattempt", "delivery_id", "tenancy_webhookdelivery"),
        create_cross_tenant_policy("tenancy_webhook", "SELECT"),
        create_cross_tenant_policy("tenancy_webhookdelivery", "SELECT"),
        create_definer_function("tenants_with_webhooks", "n integer", "SETOF uuid", DUE),
    ]

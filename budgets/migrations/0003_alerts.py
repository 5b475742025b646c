"""Alerts with their letters, rate limits in versions, and the figures of ended runs (R-BUDGET-10, 11, 14)."""

import budgets.models
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


TABLES = ("alert", "alertmail", "ratelimit", "runfigures", "dayspend")
RIGHTS = {
    # What a window could not bear is lowered to the least; nothing else of an alert ever changes.
    "alert": "SELECT, INSERT, UPDATE (wanted_usd)",
    "alertmail": "SELECT, INSERT, UPDATE",
    "ratelimit": "SELECT, INSERT",
    "runfigures": "SELECT, INSERT",
    "dayspend": "SELECT, INSERT, UPDATE",
}
DUE = """
SELECT DISTINCT tenant_id FROM budgets_alertmail
 WHERE sent_at IS NULL AND tries < 10 AND next_at <= clock_timestamp() LIMIT least(n, 1000)
"""


class Migration(MadeTogether):
    dependencies = [
        ("budgets", "0002_guards"),
        ("tenancy", "0002_guards"),
    ]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("account_id", models.UUIDField()),
                ("kind", models.CharField(max_length=12)),
                ("window_start", models.DateTimeField()),
                ("window_end", models.DateTimeField()),
                ("threshold", models.PositiveSmallIntegerField()),
                ("limit_usd", budgets.models.Amount(decimal_places=12, max_digits=30)),
                ("spent_usd", budgets.models.Amount(decimal_places=12, max_digits=30)),
                ("held_usd", budgets.models.Amount(decimal_places=12, max_digits=30)),
                ("wanted_usd", budgets.models.Amount(decimal_places=12, max_digits=30, null=True)),
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
                "indexes": [
                    models.Index(fields=["tenant", "-window_end"], name="budgets_alert_by_window"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_alert_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "account_id", "threshold"), name="budgets_alert_once_a_window"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertMail",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("person_id", models.UUIDField()),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, default="", max_length=200)),
                (
                    "alert",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mails",
                        to="budgets.alert",
                    ),
                ),
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
                    models.Index(
                        condition=models.Q(("sent_at", None)), fields=["next_at"], name="budgets_mail_due"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_alertmail_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "alert", "person_id"), name="budgets_mail_once_a_person"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DaySpend",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("day", models.DateField()),
                ("workflow", models.CharField(max_length=64)),
                (
                    "kind",
                    models.CharField(
                        choices=[("model", "model"), ("tool", "tool"), ("other", "other")], max_length=8
                    ),
                ),
                ("name", models.CharField(max_length=265)),
                ("usd", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
                ("calls", models.BigIntegerField(default=0)),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_dayspend_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "day", "workflow", "kind", "name"), name="budgets_dayspend_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RateLimit",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("submissions_per_minute", models.PositiveIntegerField(null=True)),
                ("concurrent_runs", models.PositiveIntegerField(null=True)),
                ("queue_depth", models.PositiveIntegerField(null=True)),
                ("key_submissions_per_minute", models.PositiveIntegerField(null=True)),
                ("key_concurrent_runs", models.PositiveIntegerField(null=True)),
                ("key_queue_depth", models.PositiveIntegerField(null=True)),
                ("set_by", models.UUIDField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
                ("set_at", models.DateTimeField()),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_ratelimit_of_tenant"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RunFigures",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=64)),
                ("terminal_code", models.CharField(max_length=24)),
                ("ended_at", models.DateTimeField()),
                ("cost", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
                ("cost_limit", budgets.models.Amount(decimal_places=12, max_digits=30, null=True)),
                ("steps", models.BigIntegerField(default=0)),
                ("steps_limit", models.BigIntegerField(null=True)),
                ("depth", models.BigIntegerField(default=0)),
                ("depth_limit", models.BigIntegerField(null=True)),
                ("tokens", models.BigIntegerField(default=0)),
                ("tokens_limit", models.BigIntegerField(null=True)),
                ("seconds", models.DecimalField(decimal_places=3, default=0, max_digits=18)),
                ("seconds_limit", models.DecimalField(decimal_places=3, max_digits=18, null=True)),
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
                    models.Index(fields=["tenant", "workflow", "-ended_at"], name="budgets_figures_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_runfigures_of_tenant"),
                ],
            },
        ),
        *(row_security(f"budgets_{table}") for table in TABLES),
        *(grant_table_rights(f"budgets_{table}", RIGHTS[table]) for table in TABLES),
        append_only("budgets_ratelimit"),
        append_only("budgets_runfigures"),
        same_tenant_key("budgets_alertmail", "alert_id", "budgets_alert"),
        create_cross_tenant_policy("budgets_alertmail", "SELECT"),
        create_definer_function("tenants_with_letters", "n integer", "SETOF uuid", DUE),
    ]

"""Tables of accounts, ledger entries, ceilings, prices, alerts and rate limits."""

import budgets.models
import django.db.models.deletion
import django.db.models.expressions
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
            name="Account",
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
                    "kind",
                    models.CharField(
                        choices=[
                            ("run", "Run"),
                            ("tenant_day", "Tenant Day"),
                            ("tenant_month", "Tenant Month"),
                        ],
                        max_length=12,
                    ),
                ),
                ("run_id", models.UUIDField(null=True)),
                ("parent_id", models.UUIDField(null=True)),
                ("window_start", models.DateTimeField(null=True)),
                ("window_end", models.DateTimeField(null=True)),
                ("currency", models.CharField(default="USD", max_length=3)),
                ("opened_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_account_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "kind", "window_start"), name="budgets_account_one_per_window"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("kind", "run"),
                                ("run_id", models.F("id")),
                                ("window_end", None),
                                ("window_start", None),
                            ),
                            models.Q(
                                ("closed_at", None),
                                ("kind__in", ["tenant_day", "tenant_month"]),
                                ("run_id", None),
                                ("window_start__lt", models.F("window_end")),
                            ),
                            _connector="OR",
                        ),
                        name="budgets_account_run_or_window",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("parent_id", None), ("kind", "run"), _connector="OR"),
                        name="budgets_account_lane_of_a_run",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Alert",
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
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "-window_end"], name="budgets_alert_by_window")],
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
                ("refused", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("sent_at", None)), fields=["next_at"], name="budgets_mail_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_alertmail_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "alert", "person_id", "refused"), name="budgets_mail_once_a_person"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DaySpend",
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_dayspend_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "day", "workflow", "kind", "name"), name="budgets_dayspend_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DriftFlag",
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
                ("workflow", models.CharField(max_length=64)),
                ("metric", models.CharField(max_length=8)),
                ("was", budgets.models.Amount(decimal_places=12, max_digits=30)),
                ("is_now", budgets.models.Amount(decimal_places=12, max_digits=30)),
                ("runs", models.PositiveIntegerField()),
                ("told", models.BooleanField()),
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "workflow", "metric", "-at"], name="budgets_drift_newest")
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
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
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
                ("run_id", models.UUIDField(null=True)),
                ("account_id", models.UUIDField()),
                ("month_id", models.UUIDField(null=True)),
                ("tranche_id", models.UUIDField(null=True)),
                ("effect_id", models.CharField(max_length=64, null=True)),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("reserve", "reserve"),
                            ("settle", "settle"),
                            ("overrun", "overrun"),
                            ("release", "release"),
                            ("extend", "extend"),
                            ("tranche", "tranche"),
                            ("refill", "refill"),
                            ("correction", "correction"),
                        ],
                        max_length=12,
                    ),
                ),
                ("amounts", models.TextField()),
                ("unknown", models.BooleanField(default=False)),
                ("price_version", models.CharField(blank=True, default="", max_length=100)),
                ("at", models.DateTimeField()),
                ("digest", models.BinaryField()),
                ("marks", models.BinaryField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["run_id"], name="budgets_entry_by_run"),
                    models.Index(
                        condition=models.Q(("month_id__isnull", False)),
                        fields=["account_id", "-at", "-id"],
                        name="budgets_entry_of_window",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("cause", "reserve")),
                        fields=("tenant", "effect_id"),
                        name="budgets_entry_reserved_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("cause__in", ["settle", "release"])),
                        fields=("tenant", "effect_id"),
                        name="budgets_entry_settled_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Line",
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
                    "account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lines",
                        to="budgets.account",
                    ),
                ),
                (
                    "dimension",
                    models.CharField(
                        choices=[
                            ("steps", "steps"),
                            ("model_turns", "model_turns"),
                            ("tool_calls", "tool_calls"),
                            ("external_calls", "external_calls"),
                            ("input_tokens", "input_tokens"),
                            ("output_tokens", "output_tokens"),
                            ("total_tokens", "total_tokens"),
                            ("cost_usd", "cost_usd"),
                            ("wall_clock_seconds", "wall_clock_seconds"),
                            ("retries", "retries"),
                            ("reflections", "reflections"),
                            ("replans", "replans"),
                            ("context_tokens", "context_tokens"),
                            ("memory_writes", "memory_writes"),
                            ("side_effects", "side_effects"),
                            ("granted_side_effects", "granted_side_effects"),
                            ("depth", "depth"),
                            ("transitions", "transitions"),
                        ],
                        max_length=32,
                    ),
                ),
                ("limit", budgets.models.Amount(decimal_places=12, max_digits=30, null=True)),
                ("used", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
                ("reserved", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_line_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "account", "dimension"), name="budgets_line_one_per_dimension"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used__gte", 0)), name="budgets_line_used_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reserved__gte", 0)), name="budgets_line_reserved_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("limit__gte", 0)), name="budgets_line_limit_not_negative"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Price",
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
                ("provider", models.CharField(max_length=64)),
                ("model", models.CharField(max_length=200)),
                ("version", models.PositiveIntegerField()),
                ("price", models.JSONField()),
                ("valid_from", models.DateTimeField()),
                ("set_by", models.UUIDField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_price_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "provider", "model", "version"),
                        name="budgets_price_one_per_version",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RateLimit",
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
                ("submissions_per_minute", models.PositiveIntegerField(null=True)),
                ("concurrent_runs", models.PositiveIntegerField(null=True)),
                ("queue_depth", models.PositiveIntegerField(null=True)),
                ("key_submissions_per_minute", models.PositiveIntegerField(null=True)),
                ("key_concurrent_runs", models.PositiveIntegerField(null=True)),
                ("key_queue_depth", models.PositiveIntegerField(null=True)),
                ("set_by", models.UUIDField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
                ("set_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_ratelimit_of_tenant")
                ],
            },
        ),
        migrations.CreateModel(
            name="RunFigures",
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
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "workflow", "-ended_at"], name="budgets_figures_newest"),
                    models.Index(
                        fields=["tenant", "-ended_at"], include=("cost",), name="budgets_figures_by_end"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_runfigures_of_tenant")
                ],
            },
        ),
        migrations.CreateModel(
            name="TenantCeiling",
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
                ("per_run_usd", budgets.models.Amount(decimal_places=12, max_digits=30, null=True)),
                ("daily_usd", budgets.models.Amount(decimal_places=12, max_digits=30, null=True)),
                ("monthly_usd", budgets.models.Amount(decimal_places=12, max_digits=30, null=True)),
                ("tranche_usd", budgets.models.Amount(decimal_places=12, max_digits=30, null=True)),
                ("set_by", models.UUIDField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
                ("set_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_tenantceiling_of_tenant")
                ],
            },
        ),
        migrations.CreateModel(
            name="Tranche",
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
                    "run_account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tranches",
                        to="budgets.account",
                    ),
                ),
                (
                    "day",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="budgets.account",
                    ),
                ),
                (
                    "month",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="budgets.account",
                    ),
                ),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("held", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
                ("used", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
                ("reserved", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
                ("booked", budgets.models.Amount(decimal_places=12, default=0, max_digits=30)),
                ("opened_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("closed_at", None)),
                        fields=["tenant", "day", "month"],
                        name="budgets_tranche_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="budgets_tranche_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "run_account", "day", "month"), name="budgets_tranche_one_a_window"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("booked__gte", 0), ("held__gte", 0), ("reserved__gte", 0), ("used__gte", 0)
                        ),
                        name="budgets_tranche_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "held__gte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("used"), "+", models.F("reserved")
                                ),
                            )
                        ),
                        name="budgets_tranche_covers",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("closed_at", None),
                            models.Q(("held", 0), ("reserved", 0), ("used", 0)),
                            _connector="OR",
                        ),
                        name="budgets_tranche_closed_empty",
                    ),
                ],
            },
        ),
    ]

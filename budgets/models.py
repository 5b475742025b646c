"""Tables of budgets: accounts with a line per dimension, ledger, tranches, ceilings and prices.

Spec: R-BUDGET-3, 9, 15.
"""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from budgets.core.dimension import Dimension
from budgets.core.posting import Cause
from tenancy.models import OutgoingLetter, Tenant, TenantOwned


class Amount(models.DecimalField):  # type: ignore[type-arg]
    """An exact amount: whole numbers up to 10^18 with twelve places.

    A cached token costs billionths of a US$.
    """

    def __init__(self, **options: object) -> None:
        options["max_digits"], options["decimal_places"] = 30, 12
        super().__init__(**options)  # type: ignore[arg-type]


class Account(TenantOwned):
    """The budget account of a run, or of the tenant for one day or month of its time zone.

    A run's account has the run's id. A lane's account names its parent's, on which the lane's whole budget
    is reserved.
    """

    class Kind(models.TextChoices):
        """The links of the chain, from the run up; their alphabetical order is the order of locking."""

        RUN = "run"
        TENANT_DAY = "tenant_day"
        TENANT_MONTH = "tenant_month"

    kind = models.CharField(max_length=12, choices=Kind.choices)
    run_id = models.UUIDField(null=True)
    parent_id = models.UUIDField(null=True)
    window_start = models.DateTimeField(null=True)
    window_end = models.DateTimeField(null=True)
    currency = models.CharField(max_length=3, default="USD")
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "kind", "window_start"], name="budgets_account_one_per_window"
            ),
            models.CheckConstraint(
                name="budgets_account_run_or_window",
                condition=Q(kind="run", run_id=F("id"), window_start=None, window_end=None)
                | Q(
                    kind__in=["tenant_day", "tenant_month"],
                    run_id=None,
                    window_start__lt=F("window_end"),
                    closed_at=None,
                ),
            ),
            models.CheckConstraint(
                name="budgets_account_lane_of_a_run", condition=Q(parent_id=None) | Q(kind="run")
            ),
        ]


class Line(TenantOwned):
    """One dimension of an account. A limit of NULL is no limit.

    `used` may exceed the limit by an overrun, `reserved` never.
    """

    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="lines", db_constraint=False, db_index=False
    )
    dimension = models.CharField(max_length=32, choices=[(name.value, name.value) for name in Dimension])
    limit = Amount(null=True)
    used = Amount(default=0)
    reserved = Amount(default=0)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "account", "dimension"], name="budgets_line_one_per_dimension"
            ),
            models.CheckConstraint(name="budgets_line_used_not_negative", condition=Q(used__gte=0)),
            models.CheckConstraint(name="budgets_line_reserved_not_negative", condition=Q(reserved__gte=0)),
            models.CheckConstraint(name="budgets_line_limit_not_negative", condition=Q(limit__gte=0)),
        ]


class Tranche(TenantOwned):
    """The amounts that a run holds on one tenant day and month, in US$ (budgets/core/tranche.py).

    A tranche is closed when all of it is settled.
    """

    run_account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="tranches", db_constraint=False, db_index=False
    )
    day = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    month = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    held = Amount(default=0)
    used = Amount(default=0)
    reserved = Amount(default=0)
    booked = Amount(default=0)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "run_account", "day", "month"], name="budgets_tranche_one_a_window"
            ),
            models.CheckConstraint(
                name="budgets_tranche_not_negative",
                condition=Q(used__gte=0, reserved__gte=0, held__gte=0, booked__gte=0),
            ),
            models.CheckConstraint(
                name="budgets_tranche_covers", condition=Q(held__gte=F("used") + F("reserved"))
            ),
            models.CheckConstraint(
                name="budgets_tranche_closed_empty",
                condition=Q(closed_at=None) | Q(held=0, used=0, reserved=0),
            ),
        ]
        # None of the indexed columns changes while a run draws on its tranche.
        indexes: ClassVar = [
            models.Index(
                fields=["tenant", "day", "month"], condition=Q(closed_at=None), name="budgets_tranche_open"
            ),
        ]


class Entry(TenantOwned):
    """One row of the append-only ledger (R-BUDGET-3).

    It holds deltas of the lines of one account, or of a day and a month. There are no foreign keys, not
    even to the tenant, which row-level security enforces anyway: every commit would pay for a check per
    row; `verify_ledger` proves the same.
    """

    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    run_id = models.UUIDField(null=True)
    account_id = models.UUIDField()
    month_id = models.UUIDField(null=True)
    tranche_id = models.UUIDField(null=True)
    effect_id = models.CharField(max_length=64, null=True)  # noqa: DJ001 - an entry without an effect has none, not ""
    cause = models.CharField(max_length=12, choices=[(cause.value, cause.value) for cause in Cause])
    amounts = models.TextField()
    unknown = models.BooleanField(default=False)
    price_version = models.CharField(max_length=100, default="", blank=True)
    at = models.DateTimeField()
    digest = models.BinaryField()
    marks = models.BinaryField()

    class Meta(TenantOwned.Meta):
        # No table refers to an entry, so the composite key of other tenant tables is left out: it would be
        # one more index to write at every commit.
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "effect_id"],
                condition=Q(cause="reserve"),
                name="budgets_entry_reserved_once",
            ),
            models.UniqueConstraint(
                fields=["tenant", "effect_id"],
                condition=Q(cause__in=["settle", "release"]),
                name="budgets_entry_settled_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["run_id"], name="budgets_entry_by_run"),
            # The order in which the ledger's page reads a day: newest entries first.
            models.Index(
                fields=["account_id", "-at", "-id"],
                condition=Q(month_id__isnull=False),
                name="budgets_entry_of_window",
            ),
        ]


class TenantCeiling(TenantOwned):
    """One version of a tenant's ceilings, in US$; the newest applies. NULL is no ceiling.

    `tranche_usd`: see Tranche.
    """

    per_run_usd = Amount(null=True)
    daily_usd = Amount(null=True)
    monthly_usd = Amount(null=True)
    tranche_usd = Amount(null=True)
    set_by = models.UUIDField(null=True)
    reason = models.TextField(default="", blank=True)
    set_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [*TenantOwned.Meta.constraints]


class Price(TenantOwned):
    """One version of a model's price as set by a tenant (US$ per token).

    The price comes from the tenant's own contract or is a declared worst case.
    """

    provider = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    version = models.PositiveIntegerField()
    price = models.JSONField()
    valid_from = models.DateTimeField()
    set_by = models.UUIDField(null=True)
    reason = models.TextField(default="", blank=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "provider", "model", "version"], name="budgets_price_one_per_version"
            ),
        ]


class Alert(TenantOwned):
    """An alert that a tenant's day or month reached a share of its ceiling (R-BUDGET-10).

    There is one per threshold and window. Amounts are those of the line at that moment, in US$.
    `wanted_usd` is the amount requested at the first refusal by the window; only that column ever changes.
    """

    account_id = models.UUIDField()
    kind = models.CharField(max_length=12)
    window_start = models.DateTimeField()
    window_end = models.DateTimeField()
    threshold = models.PositiveSmallIntegerField()
    limit_usd = Amount()
    spent_usd = Amount()
    held_usd = Amount()
    wanted_usd = Amount(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "account_id", "threshold"], name="budgets_alert_once_a_window"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-window_end"], name="budgets_alert_by_window"),
        ]


class AlertMail(OutgoingLetter):
    """A mail about an alert to one administrator, written together with the alert.

    `refused` marks the mail about the first request that the window refused after the alert.
    """

    alert = models.ForeignKey(
        Alert, on_delete=models.PROTECT, related_name="mails", db_constraint=False, db_index=False
    )
    refused = models.BooleanField(default=False, db_default=False)

    class Meta(OutgoingLetter.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "alert", "person_id", "refused"], name="budgets_mail_once_a_person"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["next_at"], condition=Q(sent_at=None), name="budgets_mail_due"),
        ]


class RateLimit(TenantOwned):
    """One version of a tenant's rate limits; the newest applies (R-BUDGET-11). NULL is no limit."""

    submissions_per_minute = models.PositiveIntegerField(null=True)
    concurrent_runs = models.PositiveIntegerField(null=True)
    queue_depth = models.PositiveIntegerField(null=True)
    key_submissions_per_minute = models.PositiveIntegerField(null=True)
    key_concurrent_runs = models.PositiveIntegerField(null=True)
    key_queue_depth = models.PositiveIntegerField(null=True)
    set_by = models.UUIDField(null=True)
    reason = models.TextField(default="", blank=True)
    set_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [*TenantOwned.Meta.constraints]


class RunFigures(TenantOwned):
    """Usage of an ended run and its limits: one row per run, written once (R-BUDGET-14).

    `id` is the run's.
    """

    workflow = models.CharField(max_length=64)
    terminal_code = models.CharField(max_length=24)
    ended_at = models.DateTimeField()
    cost = Amount(default=0)
    cost_limit = Amount(null=True)
    steps = models.BigIntegerField(default=0)
    steps_limit = models.BigIntegerField(null=True)
    depth = models.BigIntegerField(default=0)
    depth_limit = models.BigIntegerField(null=True)
    tokens = models.BigIntegerField(default=0)
    tokens_limit = models.BigIntegerField(null=True)
    seconds = models.DecimalField(max_digits=18, decimal_places=3, default=0)
    seconds_limit = models.DecimalField(max_digits=18, decimal_places=3, null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [*TenantOwned.Meta.constraints]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "workflow", "-ended_at"], name="budgets_figures_newest"),
            models.Index(fields=["tenant", "-ended_at"], include=["cost"], name="budgets_figures_by_end"),
        ]


class DaySpend(TenantOwned):
    """Spending of one workflow's ended runs on one model or tool, by day of the tenant's time zone."""

    day = models.DateField()
    workflow = models.CharField(max_length=64)
    kind = models.CharField(max_length=8, choices=[("model", "model"), ("tool", "tool"), ("other", "other")])
    name = models.CharField(max_length=265)
    usd = Amount(default=0)
    calls = models.BigIntegerField(default=0)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "day", "workflow", "kind", "name"], name="budgets_dayspend_once"
            ),
        ]


class DriftFlag(TenantOwned):
    """A flag for drift in a figure of a workflow's ended runs, from detection to its end (R-BUDGET-14).

    `was` and `is_now` are the medians; `runs` is the number of runs compared with as many before them;
    `told` is whether administrators were notified.
    """

    workflow = models.CharField(max_length=64)
    metric = models.CharField(max_length=8)
    was = Amount()
    is_now = Amount()
    runs = models.PositiveIntegerField()
    told = models.BooleanField()
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "workflow", "metric"],
                condition=Q(ended_at=None),
                name="budgets_drift_flag_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "workflow", "metric", "-at"], name="budgets_drift_newest"),
        ]

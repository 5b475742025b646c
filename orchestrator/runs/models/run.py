"""Runs, their mailbox of signals, and their intents and dispatches (docs/ring.md)."""

from django.db import models
from django.db.models import Q

from orchestrator.core.common.run_status import Status
from tenancy.models import TenantOwned

STATUSES = [(status.value, status.value) for status in Status]
LIVE = ("queued", "in_progress", "awaiting_gate", "awaiting_input", "paused")


class Run(TenantOwned):
    """One execution of a task. Only the lease holder writes it, under its fence, one version per commit.

    Hashes and numbers are the head of its chains; `wake_at` is when the sweep checks the run again. `title`
    is the beginning of the goal's objective, so that a list need not open fifty goals. A retry began after
    record `retry_record` of the run `retry_of`; a run has at most one retry. `retried_by` requested the
    retry, under `retry_key` where one was given.
    """

    task = models.ForeignKey(
        "orchestrator.Task", on_delete=models.PROTECT, related_name="runs", db_constraint=False
    )
    workflow = models.CharField(max_length=64)
    title = models.CharField(max_length=200, blank=True, default="")
    workflow_version = models.ForeignKey(
        "orchestrator.WorkflowVersion", on_delete=models.PROTECT, related_name="runs", db_constraint=False
    )
    mode = models.CharField(max_length=16)
    scripted = models.BooleanField(default=False)
    submitted_by = models.UUIDField()
    owner = models.UUIDField()
    status = models.CharField(max_length=16, choices=STATUSES, default=Status.QUEUED.value)
    position = models.CharField(max_length=64)
    terminal_code = models.CharField(max_length=24, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    result = models.CharField(max_length=64, blank=True)
    version = models.BigIntegerField(default=0)
    fence = models.BigIntegerField(default=0)
    lease_owner = models.CharField(max_length=80, null=True)  # noqa: DJ001 - no lease is not an empty owner
    lease_until = models.DateTimeField(null=True)
    takeovers = models.PositiveSmallIntegerField(default=0)
    wake_at = models.DateTimeField(null=True)
    record_number = models.BigIntegerField(default=-1)
    record_hash = models.BinaryField(max_length=32)
    event_seq = models.BigIntegerField(default=0)
    event_hash = models.BinaryField(max_length=32)
    snapshot_number = models.BigIntegerField(default=0)
    patch_bytes = models.BigIntegerField(default=0)
    manifest_digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    retry_of = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        related_name="retries",
        db_constraint=False,
        db_index=False,
        null=True,
    )
    retry_record = models.BigIntegerField(null=True)
    retried_by = models.UUIDField(null=True)
    retry_key = models.CharField(max_length=255, blank=True, default="")
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="run_tenant_id"),
            models.CheckConstraint(
                condition=Q(status__in=[status.value for status in Status]), name="run_status_known"
            ),
            models.CheckConstraint(
                condition=Q(lease_owner__isnull=True) | Q(lease_until__isnull=False),
                name="run_lease_has_an_end",
            ),
            models.UniqueConstraint(fields=["tenant", "retry_of"], name="run_retried_once"),
            models.CheckConstraint(
                condition=Q(retry_of=None, retry_record=None, retried_by=None, retry_key="")
                | Q(retry_of__isnull=False, retry_record__gte=0, retried_by__isnull=False),
                name="run_retry_is_whole",
            ),
        ]
        indexes = [
            # A search by title reads only this index and not the table: the included columns never change.
            models.Index(
                fields=["tenant", "-created_at", "-id"], include=["title", "workflow"], name="run_newest"
            ),
            models.Index(fields=["tenant", "status", "-created_at"], name="run_by_status"),
            models.Index(fields=["wake_at"], condition=Q(status__in=LIVE), name="run_live"),
            models.Index(fields=["finished_at"], name="run_finished"),
            models.Index(
                fields=["tenant", "created_at", "id"],
                condition=Q(status__in=("queued", "in_progress"), wake_at=None),
                name="run_ready",
            ),
            models.Index(fields=["tenant", "-started_at"], name="run_begun"),
            models.Index(
                fields=["tenant", "finished_at"], condition=Q(finished_at__isnull=False), name="run_ended"
            ),
            models.Index(fields=["tenant", "workflow", "-created_at"], name="run_by_workflow"),
            models.Index(
                fields=["tenant", "terminal_code", "-created_at"],
                condition=~Q(terminal_code=""),
                name="run_by_code",
            ),
        ]


class ManifestRow(TenantOwned):
    """A run's manifest without the shared pins; immutable. `id` is the run's."""

    body = models.BinaryField()
    digest = models.CharField(max_length=64)
    pins_digest = models.CharField(max_length=64)
    budget = models.JSONField(default=dict)

    class Meta(TenantOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "id"], name="manifest_tenant_id")]


class RunSignal(TenantOwned):
    """A message to a run (in Temporal's sense). Durable at once; consumed by the ring's next commit."""

    id = models.BigAutoField(primary_key=True)  # type: ignore[assignment]
    run = models.ForeignKey(
        "orchestrator.Run", on_delete=models.PROTECT, related_name="signals", db_constraint=False
    )
    kind = models.CharField(max_length=24)
    payload = models.JSONField()
    by = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "id"], name="signal_tenant_id")]
        indexes = [
            models.Index(fields=["run", "id"], name="signal_by_run"),
            models.Index(fields=["tenant", "at"], name="signal_by_time"),
            models.Index(
                fields=["at"], condition=Q(kind__in=("reconciled", "look_up")), name="signal_after_end"
            ),
        ]


class SignalReceipt(TenantOwned):
    """The record that consumed a signal. It is a separate row, so that signals themselves never change."""

    id = models.BigIntegerField(primary_key=True)  # type: ignore[assignment]
    run_id = models.UUIDField()
    record = models.BigIntegerField()

    class Meta(TenantOwned.Meta):
        pass


class Intent(TenantOwned):
    """An effect that was decided, committed before it is performed (R-TOOL-8). Never changed.

    A worker that takes a run over and repeats an effect in flight commits the intent again under its own
    fence.
    """

    id = models.BigAutoField(primary_key=True)  # type: ignore[assignment]
    effect = models.CharField(max_length=32)
    run_id = models.UUIDField()
    kind = models.CharField(max_length=16)
    fence = models.BigIntegerField()
    record = models.BigIntegerField()
    attempt = models.PositiveSmallIntegerField()
    tool = models.CharField(max_length=64, blank=True)
    tool_digest = models.CharField(max_length=64, blank=True)
    argument_digest = models.CharField(max_length=64, blank=True)
    key = models.CharField(max_length=40, blank=True)
    mutating = models.BooleanField()
    body = models.BinaryField()
    deadline = models.DateTimeField()
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "effect", "fence"], name="intent_once_a_fence")
        ]
        indexes = [
            models.Index(fields=["tenant", "tool", "run_id"], condition=~Q(tool=""), name="intent_by_tool")
        ]


class Dispatch(TenantOwned):
    """The first claim on an effect: `started` by the performer, or `abandoned` by the recovery.

    The performer claims it just before sending; the recovery claims it when it gives up.
    """

    id = models.CharField(max_length=32, primary_key=True)  # type: ignore[assignment]
    run_id = models.UUIDField()
    verdict = models.CharField(max_length=10)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=["started", "abandoned"]), name="dispatch_verdict")
        ]

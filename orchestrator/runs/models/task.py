"""Tasks that a person or program submitted (R-API-2)."""

from django.db import models

from tenancy.models import TenantOwned


class Task(TenantOwned):
    """A task; its runs are executions of it.

    `goal` is the canonical goal object as it was accepted. `asked_digest` covers the whole request, so that
    a reused idempotency key can be compared with it.
    """

    workflow = models.CharField(max_length=64)
    goal = models.BinaryField()
    goal_digest = models.CharField(max_length=64)
    mode = models.CharField(max_length=16)
    metadata = models.JSONField(default=dict)
    idempotency_key = models.CharField(max_length=255, blank=True)
    asked_digest = models.CharField(max_length=64, blank=True, default="")
    submitted_by = models.UUIDField()
    owner = models.UUIDField()
    created_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "id"], name="task_tenant_id")]
        indexes = [models.Index(fields=["submitted_by", "idempotency_key"], name="task_by_key")]

"""The queues in which people decide (R-APPR-5)."""

from typing import ClassVar

from django.db import models

from tenancy.db.tenant_model import TenantOwned


class Queue(TenantOwned):
    """A queue that memberships, tools, workflows and boundaries may name. Never deleted or renamed, for
    requests name it; once `closed_at` is set nothing new may name it until it is opened again."""

    name = models.CharField(max_length=64)
    description = models.CharField(max_length=300, blank=True, default="")
    created_by = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    closed_by = models.UUIDField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "name"], name="queue_once"),
            models.CheckConstraint(
                condition=models.Q(closed_at__isnull=False) | models.Q(closed_by=None),
                name="queue_closed_by_somebody_has_a_time",
            ),
        ]

"""What runs are writing to at the moment (G10)."""

from typing import ClassVar

from django.db import models

from tenancy.models import TenantOwned


class ConflictClaim(TenantOwned):
    """One thing that is written to, by the key that tools declare for it: whose call holds it, and until when
    at the latest."""

    key = models.CharField(max_length=200)
    run_id = models.UUIDField()
    effect = models.CharField(max_length=32)
    until = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "key"], name="conflictclaim_one_holder"),
        ]

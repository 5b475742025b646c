"""Locks on the resources that runs are writing to (G10)."""

from typing import ClassVar

from django.db import models

from tenancy.models import TenantOwned


class ConflictClaim(TenantOwned):
    """One locked resource, by the key that tools declare for it.

    The row names the call that holds the lock, and its latest end.
    """

    key = models.CharField(max_length=200)
    run_id = models.UUIDField()
    effect = models.CharField(max_length=32)
    until = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "key"], name="conflictclaim_one_holder"),
        ]

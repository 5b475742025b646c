"""Circuits in front of tools and model providers (R-BUDGET-13)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q


class CircuitRow(models.Model):
    """A circuit that has something to say: no row means closed, and no failure known.

    A tool's circuit is its tenant's, for arguments and addresses are: no tenant can shut a tool for another,
    or learn that it is shut. A model provider's has no tenant: key, address and quota are the house's, so
    what one run meets holds for all. A tenant's `use` of a provider is its own: what its requests were
    charged beyond their reservation says nothing of anybody else's. `id` follows from whose it is and what it
    is in front of. `prober`, `prober_fence`: the run that got the last probe, under that lease. `tried_at`:
    when a person last had a shared one tried before its cooldown was over. Not a tenant table, for there are
    rows of nobody; row-level security shows those and the tenant's own.
    """

    id = models.UUIDField(primary_key=True)
    tenant_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=8)
    subject = models.CharField(max_length=300)
    state = models.CharField(max_length=10)
    failures = models.IntegerField()
    changes = models.BigIntegerField()
    until = models.DateTimeField(null=True)
    reason = models.CharField(max_length=64, blank=True)
    since = models.DateTimeField()
    failed_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True)
    prober = models.UUIDField(null=True)
    prober_fence = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(kind__in=["tool", "model", "use"]), name="circuit_kind_known"),
            models.CheckConstraint(
                condition=Q(state="closed", until__isnull=True)
                | Q(state__in=["open", "half_open"], until__isnull=False, failures__gt=0),
                name="circuit_state_whole",
            ),
            models.CheckConstraint(
                condition=Q(kind="model", tenant_id__isnull=True)
                | Q(kind__in=["tool", "use"], tenant_id__isnull=False),
                name="circuit_of_whom",
            ),
            models.CheckConstraint(
                condition=Q(prober__isnull=True, prober_fence__isnull=True)
                | Q(prober__isnull=False, prober_fence__isnull=False),
                name="circuit_prober_whole",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["tenant_id"], condition=Q(failures__gt=0) | Q(changes__gt=0), name="circuit_told"
            )
        ]

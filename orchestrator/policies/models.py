"""A tenant's policy by origin, in versions, and changes that wait for a second person (R-TOOL-17)."""

from django.db import models
from django.db.models import F, Q

from tenancy.models import TenantOwned


class PolicyVersion(TenantOwned):
    """One version: never edited, found again by its digest; the newest holds for new runs.

    One that is weaker than the version before it names the second person who agreed to it.
    """

    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    body = models.BinaryField()
    loosens = models.BooleanField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField(null=True)
    owner = models.UUIDField(null=True)
    agreed_by = models.UUIDField(null=True)
    agreed_owner = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "version"], name="policyversion_once"),
            models.UniqueConstraint(fields=["tenant", "id"], name="policyversion_tenant_id"),
            models.CheckConstraint(
                condition=Q(loosens=False)
                | (
                    Q(
                        by__isnull=False,
                        owner__isnull=False,
                        agreed_by__isnull=False,
                        agreed_owner__isnull=False,
                    )
                    & ~Q(agreed_by=F("by"))
                    & ~Q(agreed_owner=F("owner"))
                ),
                name="policyversion_second_person",
            ),
        ]


class PolicyProposal(TenantOwned):
    """A weaker version that waits for a second person; it is settled once."""

    before = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    body = models.BinaryField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField()
    owner = models.UUIDField()
    at = models.DateTimeField()
    status = models.CharField(max_length=10, default="open")
    settled_by = models.UUIDField(null=True)
    settled_at = models.DateTimeField(null=True)
    settled_reason = models.CharField(max_length=500, blank=True, default="")

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="policyproposal_tenant_id"),
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(status="open"), name="policyproposal_one_open"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["open", "agreed", "refused", "withdrawn", "outdated"]),
                name="policyproposal_status_known",
            ),
        ]

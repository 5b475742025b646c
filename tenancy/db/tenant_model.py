"""Tenants, and what every row of one has: its tenant, and an id."""

from typing import ClassVar

from django.db import models

from tenancy.db.ids import fresh_id


class Tenant(models.Model):
    """A house. `tier` names its price class; `highest_autonomy_tier` what its workflows may be (R-GRAPH-9).
    While `suspended_at` is set nobody acts in it and nothing starts (R-SEC-10)."""

    id = models.UUIDField(primary_key=True, default=fresh_id)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=64, default="UTC")
    tier = models.CharField(max_length=32, default="standard")
    highest_autonomy_tier = models.PositiveSmallIntegerField(default=6)
    suspended_at = models.DateTimeField(null=True)
    suspended_reason = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(highest_autonomy_tier__range=(1, 7)), name="tenant_autonomy_known"
            ),
        ]


class TenantOwned(models.Model):
    """A row of one tenant. Subclasses get row-level security, and references to them are by (tenant, id)."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    id = models.UUIDField(primary_key=True, default=fresh_id)

    class Meta:
        abstract = True
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "id"], name="%(app_label)s_%(class)s_of_tenant")
        ]


class OutgoingLetter(TenantOwned):
    """A letter to one person: written with what it tells of, sent afterwards, tried again later and later
    (tenancy/notifications/mail_outbox.py)."""

    person_id = models.UUIDField()
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=200, blank=True, default="")

    class Meta(TenantOwned.Meta):
        abstract = True

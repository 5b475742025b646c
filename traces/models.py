"""The trace's tables (R-TRACE-1, R-SESS-4).

A run is named by its id alone: no deletion above can reach down here. The key of each row is its place, led
by the tenant, so that a foreign id neither collides nor reveals itself; no other number could be altered.
"""

from typing import ClassVar

from django.db import models

from tenancy.models import Tenant, TenantOwned


class Row(TenantOwned):
    """A row of one run. What a hash covers stands as the bytes that were hashed.

    No foreign key to the tenant, which row-level security names anyway: a commit writes a dozen rows, and
    each would lock the tenant's row, which all its runs share.
    """

    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    id = None  # type: ignore[assignment]  # the place is the key
    run_id = models.UUIDField()

    class Meta:
        abstract = True
        constraints: ClassVar[list[models.BaseConstraint]] = []


class Event(Row):
    """What was said, in one gapless order per run. `body` is the canonical form that was hashed."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id", "seq")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    phase = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=32)
    actor = models.CharField(max_length=64)
    body = models.BinaryField()
    previous = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = []
        indexes: ClassVar[list[models.Index]] = [
            # How often each tool fails, without a walk over every trace (R-UI-5).
            models.Index(
                fields=["tenant", "run_id"],
                condition=models.Q(kind="failure_committed"),
                name="event_failures",
            ),
            # Since when a run stands as it does, without a walk over its own (R-UI-3).
            models.Index(
                fields=["tenant", "run_id", "seq"],
                condition=models.Q(kind__in=("run_started", "run_paused", "run_resumed")),
                name="event_turns",
            ),
        ]


class Record(Row):
    """One transition with its patch, chained. `body` is the canonical form that was hashed."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id", "number")
    number = models.BigIntegerField()
    at = models.DateTimeField()
    phase = models.PositiveSmallIntegerField()
    source = models.CharField(max_length=64)
    outcome = models.CharField(max_length=64)
    target = models.CharField(max_length=64)
    body = models.BinaryField()
    previous = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)


class Snapshot(Row):
    """The whole state after a record, taken when the patches since the last one outweigh it."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id", "number")
    number = models.BigIntegerField()
    state = models.BinaryField()
    digest = models.BinaryField(max_length=32)


class Payload(Row):
    """Content from outside, once a run by its salted digest. Erased content has no body; its digest stays."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id", "digest")
    digest = models.BinaryField(max_length=32)
    body = models.BinaryField(null=True)
    size = models.BigIntegerField()


class Salt(Row):
    """The salt of a run's payload digests, and the wrapped key of its sealed values (None: the run is older
    than these); erased with the payloads."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id")
    salt = models.BinaryField(max_length=32, null=True)
    sealing_key = models.BinaryField(max_length=500, null=True)
    erased_at = models.DateTimeField(null=True)

    class Meta(Row.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(salt=None, erased_at__isnull=False)
                | models.Q(salt__isnull=False, erased_at=None),
                name="salt_or_erased",
            ),
            models.CheckConstraint(
                condition=models.Q(erased_at=None) | models.Q(sealing_key=None),
                name="salt_key_goes_with_it",
            ),
        ]

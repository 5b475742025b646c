"""Tables of the trace.

Rows refer to a run by its id alone, without a foreign key, so that no deletion elsewhere can cascade into
the trace. The primary key of each row starts with the tenant, so that an id of another tenant neither
collides nor reveals itself, and leaves no surrogate key that could be altered.

Spec: R-TRACE-1, R-SESS-4.
"""

from typing import ClassVar

from django.db import models

from tenancy.models import Tenant, TenantOwned


class Row(TenantOwned):
    """A row of one run. Hashed content is stored as the bytes that were hashed.

    There is no foreign key to the tenant, which row-level security enforces anyway: a commit writes a dozen
    rows, and each would lock the tenant's row, which all its runs share.
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
    """One event, in one gapless order per run. `body` is the canonical form that was hashed."""

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
            # Failure rates per tool, without a scan of every trace (R-UI-5).
            models.Index(
                fields=["tenant", "run_id"],
                condition=models.Q(kind="failure_committed"),
                name="event_failures",
            ),
            # The time since which a run has its current status, without a scan of its trace (R-UI-3).
            models.Index(
                fields=["tenant", "run_id", "seq"],
                condition=models.Q(kind__in=("run_started", "run_paused", "run_resumed")),
                name="event_turns",
            ),
        ]


class Record(Row):
    """One transition with its patch, hash-chained. `body` is the canonical form that was hashed."""

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
    """The whole state after a record, taken when the patches since the last snapshot are larger than it."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id", "number")
    number = models.BigIntegerField()
    state = models.BinaryField()
    digest = models.BinaryField(max_length=32)


class Payload(Row):
    """External content, stored once per run under its salted digest.

    Erased content has no body; its digest remains.
    """

    pk = models.CompositePrimaryKey("tenant_id", "run_id", "digest")
    digest = models.BinaryField(max_length=32)
    body = models.BinaryField(null=True)
    size = models.BigIntegerField()


class Salt(Row):
    """The salt of a run's payload digests and the wrapped key of its sealed values.

    Both are erased with the payloads. The key is None for a run older than sealed values.
    """

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

"""The trace's tables (R-TRACE-1, R-SESS-4). A run is named by its id alone: no deletion above can reach down here."""

from typing import ClassVar

from django.db import models

from tenancy.models import TenantOwned


class Row(TenantOwned):
    """A row that nothing refers to: numbered by the database, found by its run."""

    id = models.BigAutoField(primary_key=True)
    run_id = models.UUIDField()

    class Meta(TenantOwned.Meta):
        abstract = True


class Event(Row):
    """What was said, in one gapless order per run. `body` is the canonical form that was hashed."""

    seq = models.BigIntegerField()
    at = models.DateTimeField()
    phase = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=32)
    actor = models.CharField(max_length=64)
    body = models.BinaryField()
    previous = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    class Meta(Row.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run_id", "seq"], name="event_once")
        ]


class Record(Row):
    """One transition with its patch, chained. `body` is the canonical form that was hashed."""

    number = models.BigIntegerField()
    at = models.DateTimeField()
    phase = models.PositiveSmallIntegerField()
    source = models.CharField(max_length=64)
    outcome = models.CharField(max_length=64)
    target = models.CharField(max_length=64)
    body = models.BinaryField()
    previous = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    class Meta(Row.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run_id", "number"], name="record_once")
        ]


class Snapshot(Row):
    """The whole state after a record, taken when the patches since the last one outweigh it."""

    number = models.BigIntegerField()
    state = models.BinaryField()
    digest = models.BinaryField(max_length=32)

    class Meta(Row.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run_id", "number"], name="snapshot_once")
        ]


class Payload(Row):
    """Content from outside, once per run by its salted digest. Erased content has no body; its digest stays."""

    digest = models.BinaryField(max_length=32)
    body = models.BinaryField(null=True)
    size = models.BigIntegerField()

    class Meta(Row.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run_id", "digest"], name="payload_once")
        ]


class Salt(Row):
    """The salt of a run's payload digests; erased with the payloads."""

    salt = models.BinaryField(max_length=32, null=True)
    erased_at = models.DateTimeField(null=True)

    class Meta(Row.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run_id"], name="salt_once")
        ]

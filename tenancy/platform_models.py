"""Platform administrators: they open, change and suspend tenants and see nothing inside them (R-SEC-10).

None of these tables belongs to a tenant. The application reads who is a platform administrator and which keys
there are; the owner of the database alone gives and takes both (`manage.py platform`).
"""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from tenancy.db.ids import fresh_id


class PlatformAdmin(models.Model):
    """A person who administers the platform. The row is the right: without it there is none."""

    person = models.OneToOneField("tenancy.Person", on_delete=models.PROTECT, primary_key=True)
    since = models.DateTimeField(db_default=Now())


class PlatformKey(models.Model):
    """A key of a platform administrator, for programs. The secret is shown once and stored hashed; rows are
    never deleted. It does nothing while its person is no platform administrator."""

    id = models.UUIDField(primary_key=True, default=fresh_id)
    person = models.ForeignKey("tenancy.Person", on_delete=models.PROTECT, related_name="+")
    label = models.CharField(max_length=200)
    secret_hash = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)


class PlatformEntry(models.Model):
    """One deed of a platform administrator, or of whoever has the shell: `person` is null then. `object`
    names a tenant by its id, a person or a key. Append-only."""

    id = models.UUIDField(primary_key=True, default=fresh_id)
    person = models.ForeignKey(
        "tenancy.Person", on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    key = models.UUIDField(null=True)
    verb = models.CharField(max_length=64)
    object = models.CharField(max_length=200)
    before = models.JSONField()
    after = models.JSONField()
    reason = models.CharField(max_length=1000, blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(key=None) | models.Q(person__isnull=False), name="platform_key_of_person"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["-at", "-id"], name="platform_newest"),
            models.Index(fields=["object", "-at"], name="platform_by_object"),
        ]


class PlatformAnswer(models.Model):
    """What a POST of a platform administrator's key was answered with under its Idempotency-Key. It is
    written in the transaction of the deed itself. `answer` is JSON as text."""

    id = models.UUIDField(primary_key=True, default=fresh_id)
    api_key = models.ForeignKey(PlatformKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.CharField(max_length=255)
    path = models.CharField(max_length=255)
    body_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(blank=True, default="")
    expires_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["api_key", "path", "key"], name="platform_answer_once"),
        ]

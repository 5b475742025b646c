"""Platform administrators: they open, change and suspend tenants but cannot see into them (R-SEC-10).

None of these tables belongs to a tenant. The application only reads the platform administrators and keys;
only the owner of the database creates and removes both (`manage.py platform`).
"""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from tenancy.db.ids import fresh_id


class PlatformAdmin(models.Model):
    """A person who administers the platform. The row is the permission: without the row there is none."""

    person = models.OneToOneField("tenancy.Person", on_delete=models.PROTECT, primary_key=True)
    since = models.DateTimeField(db_default=Now())


class PlatformKey(models.Model):
    """A key of a platform administrator, for programs.

    The secret is shown once and stored hashed; rows are never deleted. The key has no effect while its person
    is not a platform administrator.
    """

    id = models.UUIDField(primary_key=True, default=fresh_id)
    person = models.ForeignKey("tenancy.Person", on_delete=models.PROTECT, related_name="+")
    label = models.CharField(max_length=200)
    secret_hash = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)


class PlatformEntry(models.Model):
    """One act of a platform administrator, or of a caller with shell access, for whom `person` is null.

    `object` names a tenant by its id, a person or a key. Append-only.
    """

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
    """The response to a POST of a platform administrator's key with an Idempotency-Key.

    The row is written in the transaction of the act itself. `answer` is JSON as text.
    """

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

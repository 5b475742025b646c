"""The files of a run, kept in the database: every state they were in, each content once (R-TOOL-19)."""

from django.db import models

from tenancy.models import TenantOwned


class FileContent(TenantOwned):
    """The bytes of a file of one run, by their SHA-256. Append-only."""

    run_id = models.UUIDField()
    digest = models.CharField(max_length=64)
    body = models.BinaryField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="filecontent_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "run_id", "digest"], name="filecontent_once"),
        ]


class WorkspaceRevision(TenantOwned):
    """One state of a run's files, made once a key from the state before. Append-only.

    `tree` is the list of {path, digest, size}, `digest` the one of all of them; revision 0 is what was
    handed in.
    """

    run_id = models.UUIDField()
    number = models.PositiveIntegerField()
    key = models.CharField(max_length=64)
    cause = models.CharField(max_length=8)
    tree = models.JSONField()
    digest = models.CharField(max_length=64)
    summary = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="workspacerevision_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "run_id", "number"], name="workspacerevision_once"),
            models.UniqueConstraint(fields=["tenant", "run_id", "key"], name="workspacerevision_key_once"),
            models.CheckConstraint(
                condition=models.Q(cause__in=["handed", "changed", "restored"]),
                name="workspacerevision_cause_known",
            ),
        ]

"""Published versions: never edited, found again by their digest (R-GRAPH-3, R-GRAPH-10, R-TOOL-1)."""

from django.db import models

from tenancy.models import TenantOwned


class Published(TenantOwned):
    """One immutable version of something a run can be pinned to. `body` is the canonical form that was
    hashed."""

    slug = models.CharField(max_length=64)
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    body = models.BinaryField()
    published_by = models.UUIDField(null=True)
    published_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        abstract = True


class WorkflowVersion(Published):
    """A compiled workflow's source. `digest` is the compiled graph's; `retired_at` takes it out of choice."""

    title = models.CharField(max_length=200, blank=True)
    tier = models.PositiveSmallIntegerField()
    retired_at = models.DateTimeField(null=True)

    class Meta(Published.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug", "version"], name="workflow_version_once"),
            models.UniqueConstraint(fields=["tenant", "id"], name="workflow_tenant_id"),
        ]


class BoundaryVersion(Published):
    """An autonomy boundary. `retired_at` takes a version out of choice."""

    retired_at = models.DateTimeField(null=True)

    class Meta(Published.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug", "version"], name="boundary_version_once"),
            models.UniqueConstraint(fields=["tenant", "id"], name="boundary_tenant_id"),
        ]


class ToolVersion(Published):
    """A tool version; `slug` is the tool's name."""

    class Meta(Published.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug", "version"], name="tool_version_once"),
            models.UniqueConstraint(fields=["tenant", "id"], name="tool_tenant_id"),
        ]


class PromptVersion(Published):
    """A prompt template."""

    class Meta(Published.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug", "version"], name="prompt_version_once"),
            models.UniqueConstraint(fields=["tenant", "id"], name="prompt_tenant_id"),
        ]


class RegistryVersion(TenantOwned):
    """The set of active tool versions: `tools` maps each name to the digest of its version. The newest one
    counts."""

    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    tools = models.JSONField()
    published_by = models.UUIDField(null=True)
    published_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "version"], name="registry_version_once"),
            models.UniqueConstraint(fields=["tenant", "id"], name="registry_tenant_id"),
        ]


class PinSet(TenantOwned):
    """The content of manifests that many runs share (core `Pins`), stored once by digest."""

    digest = models.CharField(max_length=64)
    body = models.BinaryField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "digest"], name="pins_once"),
            models.UniqueConstraint(fields=["tenant", "id"], name="pins_tenant_id"),
        ]

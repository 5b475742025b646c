"""A tenant's tool servers, their tool definitions, and the reachable private addresses (R-TOOL-21)."""

from django.db import models
from django.db.models import Q

from tenancy.models import TenantOwned


class ToolServer(TenantOwned):
    """A tool server. Its address never changes: another address is another server.

    `address` is a URL, or with `stdio` the name of one of the operator's commands.
    """

    slug = models.CharField(max_length=32)
    kind = models.CharField(max_length=8)
    address = models.CharField(max_length=2_000)
    origin = models.CharField(max_length=300)
    secret = models.CharField(max_length=64, blank=True)
    secret_header = models.CharField(max_length=64, blank=True)
    created_by = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    looked_at = models.DateTimeField(null=True)
    protocol = models.CharField(max_length=20, blank=True)
    named = models.CharField(max_length=120, blank=True)
    fault = models.CharField(max_length=600, blank=True)
    removed_at = models.DateTimeField(null=True)
    removed_by = models.UUIDField(null=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="toolserver_tenant_id"),
            models.UniqueConstraint(
                fields=["tenant", "slug"], condition=Q(removed_at__isnull=True), name="toolserver_once"
            ),
            models.CheckConstraint(condition=Q(kind__in=["http", "stdio"]), name="toolserver_kind_known"),
        ]


class ToolDefinition(TenantOwned):
    """A definition that a server gave of a tool, canonical.

    Append-only, so that what was admitted can always be shown.
    """

    server = models.ForeignKey(ToolServer, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    tool = models.CharField(max_length=128)
    digest = models.CharField(max_length=64)
    body = models.BinaryField()
    seen_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="tooldefinition_tenant_id"),
            models.UniqueConstraint(
                fields=["tenant", "server", "tool", "digest"], name="tooldefinition_once"
            ),
        ]


class ServerTool(TenantOwned):
    """The state of a server's tool.

    `seen` is the digest of the current definition, `admitted` that of the admitted one.
    """

    server = models.ForeignKey(ToolServer, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    tool = models.CharField(max_length=128)
    name = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=12)
    seen = models.CharField(max_length=64, blank=True)
    admitted = models.CharField(max_length=64, blank=True)
    why = models.CharField(max_length=500, blank=True)
    since = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="servertool_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "server", "tool"], name="servertool_once"),
            models.CheckConstraint(
                condition=Q(state__in=["quarantined", "admitted", "gone", "refused"]),
                name="servertool_state_known",
            ),
            # An admitted tool has exactly the definition that was seen.
            models.CheckConstraint(
                condition=~Q(state="admitted")
                | (Q(admitted=models.F("seen")) & ~Q(admitted="") & ~Q(name="")),
                name="servertool_admitted_as_seen",
            ),
        ]


class PrivatePlaces(TenantOwned):
    """One version of a tenant's list of private `host:port` that its tools may reach. The newest counts."""

    version = models.PositiveIntegerField()
    places = models.JSONField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="privateplaces_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "version"], name="privateplaces_once"),
        ]

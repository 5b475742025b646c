"""Queries for tool servers: their addresses, the tools they offer and the private places a tenant may reach.

All functions run in the tenant's context.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q

from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.core.tools.remote_definition import Definition, diff_definitions, list_definition_warnings
from orchestrator.tools.gateways.egress.own_listeners import own_listeners
from orchestrator.tools.gateways.mcp.mcp_client import ServerAddress
from orchestrator.tools.models.tool_server import PrivatePlaces, ServerTool, ToolDefinition, ToolServer
from tenancy.core.errors import NotFound, SecretUnusable
from tenancy.models import Secret
from tenancy.secret_store import reveal_secret

STDIO = "stdio:"
# How long before a secret expires its pages show a warning.
WARNED_BEFORE: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNow:
    """A server in its current state, with the number of its tools in each state."""

    row: ToolServer
    states: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """One tool of a server: its current definition, its admitted definition and their difference."""

    row: ServerTool
    now: Definition | None
    admitted: Definition | None
    warnings: tuple[str, ...] = ()
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesNow:
    """The private places that a tenant's tools may reach."""

    places: tuple[str, ...] = ()
    version: int = 0
    reason: str = ""
    by: UUID | None = None
    at: datetime | None = None


def servers_now() -> list[ServerNow]:
    """Every server in use, by name."""
    rows = ServerTool.objects.values("server_id", "state").annotate(count=Count("id")).order_by()
    states: dict[UUID, dict[str, int]] = {}
    for row in rows:
        states.setdefault(row["server_id"], {})[row["state"]] = row["count"]
    servers = ToolServer.objects.filter(removed_at=None).order_by("slug")
    return [ServerNow(row=server, states=states.get(server.id, {})) for server in servers]


def server_of(slug: str) -> ToolServer:
    """Return a server in use.

    Raises: NotFound, also for a server of another tenant.
    """
    found = ToolServer.objects.filter(slug=slug, removed_at=None).first()
    if found is None:
        raise NotFound
    return found


def offered_by(server: ToolServer) -> list[OfferedTool]:
    """List the tools that a server offers or once offered, quarantined tools first.

    Within each state, tools whose definition has changed since their admission come first.
    """
    order = {"quarantined": 0, "admitted": 1, "refused": 2, "gone": 3}
    rows = sorted(
        ServerTool.objects.filter(server=server),
        key=lambda row: (order[row.state], row.admitted in ("", row.seen), row.tool),
    )
    wanted = {digest for row in rows for digest in (row.seen, row.admitted) if digest}
    known = {
        (found.tool, found.digest): Definition.model_validate_json(bytes(found.body))
        for found in ToolDefinition.objects.filter(server=server, digest__in=wanted)
    }
    return [
        _build_offered_tool(row, known.get((row.tool, row.seen)), known.get((row.tool, row.admitted)))
        for row in rows
    ]


def definition_of(server: ToolServer, tool: str, digest: str) -> Definition:
    """Return a definition that the server once sent.

    Raises: NotFound.
    """
    found = ToolDefinition.objects.filter(server=server, tool=tool, digest=digest).first()
    if found is None:
        raise NotFound
    return Definition.model_validate_json(bytes(found.body))


def quarantined_names() -> dict[str, ServerTool]:
    """Return the server tools that may not be called now, keyed by their registry names."""
    rows = ServerTool.objects.filter(~Q(state="admitted") & ~Q(name="")).order_by("since")
    return {row.name: row for row in rows}


def places_now() -> PlacesNow:
    """Return the private places in force."""
    newest = PrivatePlaces.objects.order_by("-version").first()
    if newest is None:
        return PlacesNow()
    return PlacesNow(
        places=tuple(newest.places), version=newest.version, reason=newest.reason, by=newest.by, at=newest.at
    )


def places_before() -> list[PlacesNow]:
    """Return every version of the list of private places, newest first, fifty at most."""
    rows = PrivatePlaces.objects.order_by("-version")[:50]
    return [
        PlacesNow(places=tuple(r.places), version=r.version, reason=r.reason, by=r.by, at=r.at) for r in rows
    ]


def leave_for(origin: str) -> EgressPolicy:
    """Build the egress permission of the current tenant for one origin.

    It is the only way to connect to an address that a tenant has configured.
    """
    return leave_with(places_now().places, origin)


def leave_with(places: tuple[str, ...], origin: str) -> EgressPolicy:
    """Build the egress permission for one origin under the given private places."""
    return EgressPolicy(
        origins=(origin,), private=places, bound=settings.INTERLOCK_PRIVATE_PLACES, listeners=own_listeners()
    )


def list_server_commands() -> dict[str, tuple[str, ...]]:
    """Return the commands, by name, that the operator lets tenants start as tool servers (P11)."""
    given: dict[str, tuple[str, ...]] = settings.INTERLOCK_MCP_COMMANDS
    return dict(sorted(given.items()))


def get_expiry_status(
    secret: Secret, at: datetime, *, renewed: bool = True
) -> Literal["", "expired", "soon"]:
    """Return "expired", "soon" if the secret expires within a week, else "".

    With `renewed`, a secret that is renewed automatically never expires.
    """
    if secret.expires_at is None or (renewed and secret.renews_at):
        return ""
    if secret.expires_at <= at:
        return "expired"
    return "soon" if secret.expires_at <= at + WARNED_BEFORE else ""


def secret_of_server(server: ToolServer) -> Secret | None:
    """Return the secret that is sent to a server; None if it has none or the secret is revoked."""
    if not server.secret:
        return None
    return Secret.objects.filter(revoked_at=None, name=server.secret).defer("sealed", "renewal").first()


def place_of_server(tenant_id: UUID, server: ToolServer) -> ServerAddress:
    """Return how to connect to a server now, with its secret decrypted.

    Raises: SecretUnusable.
    """
    secret = reveal_secret(tenant_id, server.secret, server.origin) if server.secret else ""
    if server.kind == "stdio":
        argv = list_server_commands().get(server.address, ())
        if not argv:
            raise SecretUnusable(name=server.address, detail="the operator allows no such command any more")
        environment = {server.secret_header: secret} if secret else {}
        return ServerAddress(server=server.slug, argv=argv, environment=environment, secret=secret)
    headers = {}
    if secret:
        bearer = server.secret_header.lower() == "authorization"
        headers[server.secret_header] = f"Bearer {secret}" if bearer else secret
    return ServerAddress(
        server=server.slug, url=server.address, leave=leave_for(server.origin), headers=headers, secret=secret
    )


def _build_offered_tool(row: ServerTool, now: Definition | None, admitted: Definition | None) -> OfferedTool:
    before, after = None, None
    if now is not None and admitted is not None and row.seen != row.admitted:
        before, after = diff_definitions(admitted, now)
    said = list_definition_warnings(now) if now is not None else ()
    return OfferedTool(row=row, now=now, admitted=admitted, warnings=said, before=before, after=after)

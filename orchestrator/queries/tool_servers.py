"""Reads of tool servers: where they are, what they offer, and what may be reached. Inside the tenant's
context.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q

from orchestrator.core.tools.egress_policy import Leave
from orchestrator.core.tools.remote_definition import Definition, diff_definitions, list_definition_warnings
from orchestrator.gateways.tools.mcp_client import Place
from orchestrator.gateways.tools.own_listeners import own_listeners
from orchestrator.models import PrivatePlaces, ServerTool, ToolDefinition, ToolServer
from tenancy.core.errors import NotFound, SecretUnusable
from tenancy.models import Secret
from tenancy.secret_store import reveal_secret

STDIO = "stdio:"
# How long before a secret ends its pages say so.
WARNED_BEFORE: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNow:
    """A server as it stands, with how many of its tools are in each state."""

    row: ToolServer
    states: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A server's tool: what it is now, what was admitted, and what differs between the two."""

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
    """A server in use. Raises NotFound, also for another tenant's."""
    found = ToolServer.objects.filter(slug=slug, removed_at=None).first()
    if found is None:
        raise NotFound
    return found


def offered_by(server: ToolServer) -> list[OfferedTool]:
    """What a server offers or once offered: what waits for an admin first, and of that what changed."""
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
    """A definition that the server once gave. Raises NotFound."""
    found = ToolDefinition.objects.filter(server=server, tool=tool, digest=digest).first()
    if found is None:
        raise NotFound
    return Definition.model_validate_json(bytes(found.body))


def quarantined_names() -> dict[str, ServerTool]:
    """The tools of servers that may not be called now, by their names in the registry."""
    rows = ServerTool.objects.filter(~Q(state="admitted") & ~Q(name="")).order_by("since")
    return {row.name: row for row in rows}


def places_now() -> PlacesNow:
    """The private places in force."""
    newest = PrivatePlaces.objects.order_by("-version").first()
    if newest is None:
        return PlacesNow()
    return PlacesNow(
        places=tuple(newest.places), version=newest.version, reason=newest.reason, by=newest.by, at=newest.at
    )


def places_before() -> list[PlacesNow]:
    """Every version of the list, newest first, fifty at most."""
    rows = PrivatePlaces.objects.order_by("-version")[:50]
    return [
        PlacesNow(places=tuple(r.places), version=r.version, reason=r.reason, by=r.by, at=r.at) for r in rows
    ]


def leave_for(origin: str) -> Leave:
    """What this tenant may reach at one origin: the one way to leave for what a tenant has named."""
    return leave_with(places_now().places, origin)


def leave_with(places: tuple[str, ...], origin: str) -> Leave:
    """Leave for one origin under these private places."""
    return Leave(
        origins=(origin,), private=places, bound=settings.INTERLOCK_PRIVATE_PLACES, listeners=own_listeners()
    )


def list_server_commands() -> dict[str, tuple[str, ...]]:
    """The commands that the operator lets tenants start as tool servers, by name (P11)."""
    given: dict[str, tuple[str, ...]] = settings.INTERLOCK_MCP_COMMANDS
    return dict(sorted(given.items()))


def get_expiry_status(
    secret: Secret, at: datetime, *, renewed: bool = True
) -> Literal["", "expired", "soon"]:
    """Whether a secret has run out, or does within a week. One that is `renewed` by itself never does."""
    if secret.expires_at is None or (renewed and secret.renews_at):
        return ""
    if secret.expires_at <= at:
        return "expired"
    return "soon" if secret.expires_at <= at + WARNED_BEFORE else ""


def secret_of_server(server: ToolServer) -> Secret | None:
    """The secret that a server is sent; None where it has none, or it is not kept any more."""
    if not server.secret:
        return None
    return Secret.objects.filter(revoked_at=None, name=server.secret).defer("sealed", "renewal").first()


def place_of_server(tenant_id: UUID, server: ToolServer) -> Place:
    """How to get to a server now, its secret opened. Raises SecretUnusable."""
    secret = reveal_secret(tenant_id, server.secret, server.origin) if server.secret else ""
    if server.kind == "stdio":
        argv = list_server_commands().get(server.address, ())
        if not argv:
            raise SecretUnusable(name=server.address, detail="the operator allows no such command any more")
        environment = {server.secret_header: secret} if secret else {}
        return Place(server=server.slug, argv=argv, environment=environment, secret=secret)
    headers = {}
    if secret:
        bearer = server.secret_header.lower() == "authorization"
        headers[server.secret_header] = f"Bearer {secret}" if bearer else secret
    return Place(
        server=server.slug, url=server.address, leave=leave_for(server.origin), headers=headers, secret=secret
    )


def _build_offered_tool(row: ServerTool, now: Definition | None, admitted: Definition | None) -> OfferedTool:
    before, after = None, None
    if now is not None and admitted is not None and row.seen != row.admitted:
        before, after = diff_definitions(admitted, now)
    said = list_definition_warnings(now) if now is not None else ()
    return OfferedTool(row=row, now=now, admitted=admitted, warnings=said, before=before, after=after)

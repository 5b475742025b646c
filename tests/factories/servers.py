"""A tool server connected to a tenant: allowed, added, looked at, its tools admitted."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from orchestrator import bundled_content
from orchestrator.core.domain.boundary import ToolGrant
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.core.tools.registration import asked_admission
from orchestrator.publishing.actions.versions import publish_boundary, publish_workflow
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.actions.tool_servers import NewServer, add_server, admit_tool, look_at_server
from orchestrator.tools.queries.tool_servers import OfferedTool, offered_by, server_of
from orchestrator.tools.queries.tools import ToolNow
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.mcp_server import ToolServer
from tests.factories.world import World

READS = {"risk": "read_only", "reversibility": "pure", "recovery": "read_only"}
CHANGES = {"risk": "destructive", "reversibility": "irreversible"}


def connect(house: UUID, server: ToolServer, slug: str = "shop", **more: Any) -> None:
    """Allow its place, add it, look at it."""
    set_places(house, (server.place,), expected=None, by=None, reason="A server of ours.")
    new = NewServer(slug=slug, kind="http", address=server.url, **more)
    add_server(house, new, by=None, reason="We need it.")
    look_at_server(house, slug, by=None)


def offered(house: UUID, tool: str, slug: str = "shop") -> OfferedTool:
    """One tool of the server, as it stands."""
    with tenant_transaction(house):
        return next(one for one in offered_by(server_of(slug)) if one.row.tool == tool)


def admit(house: UUID, tool: str, slug: str = "shop", **admission: Any) -> ToolNow:
    """Admit a tool as it was seen last."""
    seen = offered(house, tool, slug).row.seen
    return admit_tool(house, slug, tool, seen, asked_admission(admission), by=None, reason="Looked at.")


def let_in(world: World, *families: str, **budget: int) -> None:
    """The tool loop may call these families, up to destructive, behind their gates."""
    boundary = bundled_content.load_bundled_boundaries()["tool-loop-default"]
    grants = tuple(ToolGrant(name=f"{family}.*", risk_ceiling=Risk.DESTRUCTIVE) for family in families)
    limits = {**boundary.budget, "external_calls": Decimal(40), **{k: Decimal(v) for k, v in budget.items()}}
    spec = bundled_content.load_bundled_workflows()["tool-loop"]
    with tenant_transaction(world.id):
        publish_boundary(world.id, boundary.evolve(tools=(*boundary.tools, *grants), budget=limits), by=None)
        names = tuple(f"{family}.*" for family in families)
        publish_workflow(world.id, spec.evolve(tools=(*spec.tools, *names)), by=None)

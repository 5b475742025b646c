"""Reads of proposals to relax a guard, which wait for a second person. Call them inside the tenant's
context.
"""

from typing import Final
from uuid import UUID

from budgets.actions import newest_ceilings
from orchestrator.core.common.errors import ProposalSettled
from orchestrator.policies.queries.boundaries import newest_boundary, retirement_tag
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.models.tool_server import ServerTool, ToolServer
from orchestrator.tools.queries.destinations import Kind, outside_now
from orchestrator.tools.queries.tool_servers import places_now
from orchestrator.tools.queries.tools import ToolNow, tool_now
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import raw_cursor
from tenancy.people.sign_in_rules import sign_in_rules_now

SHOWN = 100
# The kinds of proposals about a destination list, by list; most others are about a tool.
BOUNDARY: Final = "boundary "
LISTS: Final[dict[str, Kind]] = {"web": "web", "databases": "databases", "mail": "mail", "models": "models"}


def open_proposal(proposal: UUID | None) -> ToolProposal:
    """Return one open proposal.

    Raises: NotFound, also for another tenant's, and ProposalSettled.
    """
    row = proposal_of(proposal)
    if row.status != "open":
        raise ProposalSettled(status=row.status)
    return row


def proposal_of(proposal: UUID | None) -> ToolProposal:
    """Return one proposal, open or settled.

    Raises: NotFound, also for another tenant's.
    """
    row = None if proposal is None else ToolProposal.objects.filter(id=proposal).first()
    if row is None:
        raise NotFound
    return row


def tool_proposals(*, waiting: bool = True) -> list[ToolProposal]:
    """Return the open proposals, oldest first; or the settled ones, newest first, as many as a page shows."""
    if waiting:
        return list(ToolProposal.objects.filter(status="open").order_by("id"))
    return list(ToolProposal.objects.exclude(status="open").order_by("-settled_at", "-id")[:SHOWN])


def boundary_name(slug: str) -> str:
    """Return the name of a boundary in a proposal; no tool has such a name."""
    return f"{BOUNDARY}{slug}"


def find_stale_reason(tenant_id: UUID, row: ToolProposal) -> str:
    """Return why a proposal cannot be approved any more; empty where it is still current.

    A proposal is stale when its target was changed or removed since it was seen.
    """
    if (now := _tag_now(tenant_id, row)) is not None:
        return "" if now == row.tag else "It has another version by now."
    try:
        tool = tool_now(tenant_id, row.tool)
    except NotFound:
        return _not_offered(row) if not row.tag else "There is no such tool any more."
    if tool.tag != row.tag:
        return _format_tool_change(tool)
    return _not_offered(row)


def _tag_now(tenant_id: UUID, row: ToolProposal) -> str | None:
    """Return the current tag of a proposal's target; None where the target is a tool."""
    kind = row.kind
    if kind in LISTS:
        return str(outside_now(LISTS[kind]).version)
    if kind == "boundary":
        slug = row.tool.removeprefix(BOUNDARY)
        if "retire" in row.body:
            return retirement_tag(slug)
        newest = newest_boundary(slug)
        return str(newest.version if newest is not None else 0)
    if kind == "places":
        return str(places_now().version)
    if kind == "sign_in":
        return str(sign_in_rules_now().version)
    return newest_ceilings(tenant_id, raw_cursor()).digest if kind == "ceilings" else None


def _format_tool_change(now: ToolNow) -> str:
    remote = now.spec.remote
    if remote is not None and remote.kind == "mcp" and not _is_active_server(remote.server):
        return "Its server was removed, and the tool with it."
    if not now.enabled:
        return "The tool was taken out of use."
    return "The tool has changed since it was asked for."


def _not_offered(row: ToolProposal) -> str:
    """Return why a seen server tool cannot be admitted any more; empty for all but admissions."""
    if row.kind != "admit":
        return ""
    if not _is_active_server(row.body["server"]):
        return "Its server was removed, and the tool with it."
    found = ServerTool.objects.filter(
        server__slug=row.body["server"], server__removed_at=None, tool=row.body["tool"]
    ).first()
    if found is None or found.state == "gone":
        return "Its server offers the tool no more."
    return "" if found.seen == row.body["seen"] else "Its server offers the tool in another form by now."


def _is_active_server(server: str) -> bool:
    return ToolServer.objects.filter(slug=server, removed_at=None).exists()

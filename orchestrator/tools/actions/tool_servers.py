"""Add, list and remove tool servers; admit and quarantine their tools (R-TOOL-21, P1 to P6).

A tool that a server offers is in quarantine until an admin admits exactly the definition that was seen. If
another definition is seen, the tool returns to quarantine: new runs lack it, and runs under way are denied it
at their next call.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from orchestrator.core.common.errors import EgressRefused, NameTaken, ServerUnreachable
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec
from orchestrator.core.tools.egress_policy import EgressPolicy, target_of
from orchestrator.core.tools.guard_relaxation import describe_relaxations, describe_weaker_registration
from orchestrator.core.tools.registration import Admission, build_remote_tool_spec
from orchestrator.core.tools.remote_definition import (
    MOST_KNOWN,
    Definition,
    Drift,
    ListedTool,
    Listing,
    is_server_name,
    list_colliding_names,
    qualify_tool_name,
    same_tool,
)
from orchestrator.publishing.actions.versions import (
    check_tool_queue,
    hold_registry,
    publish_registry,
    publish_tool,
)
from orchestrator.publishing.models import ToolVersion
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.tools.actions.destinations import with_list
from orchestrator.tools.actions.stale_proposals import outdate_proposals
from orchestrator.tools.actions.tool_updates import switch_tool
from orchestrator.tools.gateways.egress.guarded_transport import look_before_saving
from orchestrator.tools.gateways.mcp.mcp_client import list_server_tools
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.models.tool_server import ServerTool, ToolDefinition, ToolServer
from orchestrator.tools.queries.destinations import web_rules
from orchestrator.tools.queries.tool_servers import (
    STDIO,
    definition_of,
    leave_for,
    list_server_commands,
    place_of_server,
    server_of,
)
from orchestrator.tools.queries.tools import DISABLED, ToolNow, Version, registry_tools, tool_now, versions_of
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotFound, SecretUnusable, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import ask_second
from tenancy.secret_store import secrets_of

CHANGED = "Its definition changed since it was admitted."
GONE = "The server does not offer it any more."
BACK = "It was not to be called for a while, and is as it was admitted."
NEW = "Nobody has looked at it yet."
TWO = "Two tools of the server end under one name."
VERBS = {"quarantined": "tool.quarantine", "refused": "tool.refuse", "gone": "tool.gone"}
NAMELESS = "No name in the registry can be made of its own."


class NewServer(FrozenModel):
    """A server to add. `address` is a URL, or with `stdio` the name of one of the operator's commands."""

    slug: str
    kind: str
    address: str
    secret: str = ""
    secret_header: str = "Authorization"  # noqa: S105 - where a secret goes, not what it is


def add_server(tenant_id: UUID, new: NewServer, *, by: UUID | None, reason: str) -> ToolServer:
    """Add a server; none of its tools can be called yet. Outermost verb: owns the transaction.

    The address is checked as for a connection. Raises: InvalidInput, EgressRefused, NameTaken,
    SecretUnusable.
    """
    origin = _resolve_server_origin(tenant_id, new)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        _check_name(new.slug)
        _check_secret(tenant_id, new, origin)
        made = ToolServer.objects.create(
            tenant_id=tenant_id, slug=new.slug, kind=new.kind, address=new.address, origin=origin,
            secret=new.secret, secret_header=new.secret_header if new.secret else "", created_by=by,
            created_at=database_now(),
        )  # fmt: skip
        after = {"kind": new.kind, "address": new.address, "secret": new.secret}
        write_audit_entry(
            tenant_id,
            by,
            verb="server.add",
            object=f"server:{new.slug}",
            before={},
            after=after,
            reason=reason,
        )
        return made


def look_at_server(tenant_id: UUID, slug: str, *, by: UUID | None) -> ToolServer:
    """List a server's tools and quarantine new or changed ones. Waits for it outside any transaction.

    Raises: NotFound, ServerUnreachable, EgressRefused, SecretUnusable. An unreachable server or a refused
    address is also stored on the server as its fault.
    """
    with tenant_transaction(tenant_id):
        server = server_of(slug)
        place = place_of_server(tenant_id, server)
    try:
        return note_listing(tenant_id, slug, asyncio.run(list_server_tools(place)), by=by)
    except (ServerUnreachable, EgressRefused) as error:
        with tenant_transaction(tenant_id):
            fault = str(error)[:600]
            ToolServer.objects.filter(id=server.id).update(fault=fault, looked_at=database_now())
        raise


def note_listing(tenant_id: UUID, slug: str, listing: Listing, *, by: UUID | None) -> ToolServer:
    """Store the tools that a server offered. Outermost verb: owns the transaction.

    Raises: NotFound; ServerUnreachable if it has named more tools than are kept of one server (P13).
    """
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        server = server_of(slug)
        _check_room(server, listing)
        twice = list_colliding_names(slug, tuple(one.name for one in listing.tools))
        for one in listing.tools:
            _record_listed_tool(server, one, TWO if one.name in twice else "", by=by)
        offered = [one.name for one in listing.tools]
        for row in ServerTool.objects.filter(server=server).exclude(tool__in=offered).exclude(state="gone"):
            _update_tool_state(row, "gone", "", GONE, by=by)
        ToolServer.objects.filter(id=server.id).update(
            looked_at=database_now(), protocol=listing.protocol, named=listing.server, fault=""
        )
        return server_of(slug)


def note_drift(tenant_id: UUID, drift: Drift) -> None:
    """Quarantine a tool that a call found changed. Outermost verb, off the event loop: closes its connection.

    Of concurrent calls only the first one does so: a tool that is no longer admitted is read again only when
    a person looks at the server, however often it changes (P13).
    """
    try:
        with tenant_transaction(tenant_id):
            hold_registry(tenant_id)
            server = server_of(drift.server)
            for row in ServerTool.objects.filter(server=server, tool=drift.tool, state="admitted"):
                if drift.now is not None:
                    _record_listed_tool(server, drift.now, "", by=None)
                else:
                    _update_tool_state(row, "gone", "", GONE, by=None)
    except NotFound:
        # The server was removed meanwhile, together with its tools.
        return
    finally:
        connection.close()


def admit_tool(
    tenant_id: UUID,
    slug: str,
    tool: str,
    seen: str,
    admission: Admission,
    *,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> ToolNow:
    """Publish a tool, as it was `seen` (its digest), in the registry. Outermost verb: owns the transaction.

    `agreed` is the second administrator who agreed to weaker safeguards.

    Raises: NotFound, Stale if the tool is no longer what was seen, InvalidInput, NameTaken,
    SecondPersonNeeded.
    """
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        server = server_of(slug)
        row = ServerTool.objects.filter(server=server, tool=tool).first()
        if row is None:
            raise NotFound
        if row.seen != seen or row.state not in ("quarantined", "admitted"):
            raise Stale
        definition = definition_of(server, tool, seen)
        spec = build_remote_tool_spec(
            row.name, slug, server.origin, definition, _with_lookup(server, admission)
        )
        spec = with_list(spec, web_rules())
        check_tool_queue(spec)
        standing = versions_of(row.name)
        if standing and not same_tool(standing[0].spec, "mcp", slug, tool):
            raise NameTaken(name=row.name)
        _ask_second(tenant_id, definition, spec, standing, by=by, agreed=agreed, reason=reason)
        ServerTool.objects.filter(id=row.id).update(
            state="admitted", admitted=seen, why="", since=database_now()
        )
        digest = publish_tool(tenant_id, spec, by=by).digest
        publish_registry(tenant_id, {**registry_tools(), row.name: digest}, by=by)
        switch_tool(tenant_id, row.name, enabled=True, by=by, reason=reason)
        now = tool_now(tenant_id, row.name)
        before = {"admitted": row.admitted, "risk": standing[0].spec.risk.value if standing else ""}
        after = {
            "admitted": seen,
            "risk": spec.risk.value,
            "recovery": admission.recovery,
            "version": now.spec.version,
            **({} if agreed is None else {"agreed_by": str(agreed)}),
        }
        write_audit_entry(
            tenant_id, by, verb="tool.admit", object=f"tool:{row.name}", before=before, after=after,
            reason=reason,
        )  # fmt: skip
        return now


def _ask_second(
    tenant_id: UUID,
    definition: Definition,
    spec: ToolSpec,
    standing: Sequence[Version],
    *,
    by: UUID | None,
    agreed: UUID | None,
    reason: str,
) -> None:
    """Require a second person if an admission is weaker than the tool's version before it.

    A definition not admitted so far is also compared with what it suggests itself. Raises:
    SecondPersonNeeded.
    """
    before = standing[0].spec if standing else None
    fresh = before is None or before.remote is None or before.remote.definition != definition.digest
    found = [
        *(describe_relaxations(before, spec) if before else ()),
        *(describe_weaker_registration(definition, spec) if fresh else ()),
    ]
    tag = tool_now(tenant_id, spec.name).tag if standing else ""
    ask_second(tenant_id, spec.name, found, by=by, agreed=agreed, reason=reason, tag=tag)


def quarantine_tool(tenant_id: UUID, slug: str, tool: str, *, by: UUID | None, reason: str) -> None:
    """Return an admitted tool to quarantine. Outermost verb: owns the transaction. Raises: NotFound."""
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        row = ServerTool.objects.filter(server=server_of(slug), tool=tool).first()
        if row is None:
            raise NotFound
        if row.state == "admitted":
            _update_tool_state(row, "quarantined", row.seen, reason, by=by)


def remove_server(tenant_id: UUID, slug: str, *, by: UUID | None, reason: str) -> None:
    """Remove a server; its tools take no further call. Outermost verb: owns the transaction. Raises:
    NotFound.
    """
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        server = server_of(slug)
        ToolServer.objects.filter(id=server.id).update(removed_at=database_now(), removed_by=by)
        for row in ServerTool.objects.filter(server=server).exclude(state="gone"):
            _update_tool_state(row, "gone", "", f"The server was removed: {reason}", by=by)
        write_audit_entry(
            tenant_id, by, verb="server.remove", object=f"server:{slug}",
            before={"address": server.address}, after={}, reason=reason,
        )  # fmt: skip


def _check_room(server: ToolServer, listing: Listing) -> None:
    known = set(ServerTool.objects.filter(server=server).values_list("tool", flat=True))
    if len(known.union(one.name for one in listing.tools)) > MOST_KNOWN:
        detail = f"it has named more than {MOST_KNOWN} tools by now; remove it, and add it anew"
        raise ServerUnreachable(server=server.slug, detail=detail)


def _record_listed_tool(server: ToolServer, one: ListedTool, collision: str, *, by: UUID | None) -> None:
    """Record one tool as the server lists it now."""
    name = qualify_tool_name(server.slug, one.name) or ""
    refused = collision or one.refused or ("" if name else NAMELESS)
    seen = ""
    if one.definition is not None:
        seen = one.definition.digest
        ToolDefinition.objects.get_or_create(
            tenant_id=server.tenant_id, server=server, tool=one.name, digest=seen,
            defaults={"body": one.definition.body, "seen_at": database_now()},
        )  # fmt: skip
    row = ServerTool.objects.filter(server=server, tool=one.name).first()
    if row is None:
        state = "refused" if refused else "quarantined"
        ServerTool.objects.create(
            tenant_id=server.tenant_id, server=server, tool=one.name[:128], name=name, state=state, seen=seen,
            why=(refused or NEW)[:500], since=database_now(),
        )  # fmt: skip
    elif refused:
        _update_tool_state(row, "refused", seen, refused, by=by)
    elif row.state == "admitted" and row.admitted == seen:
        return
    elif (row.state, row.seen) != ("quarantined", seen):
        why = NEW if not row.admitted else BACK if row.admitted == seen else CHANGED
        _update_tool_state(row, "quarantined", seen, why, by=by)


def _update_tool_state(row: ServerTool, state: str, seen: str, why: str, *, by: UUID | None) -> None:
    """Move a tool to a state other than admitted: disabled in the registry and for runs, and audited."""
    was_in = row.state == "admitted"
    before = {"state": row.state, "seen": row.seen}
    ServerTool.objects.filter(id=row.id).update(state=state, seen=seen, why=why[:500], since=database_now())
    if was_in and not _switched_off(row):
        switch_tool(row.tenant_id, row.name, enabled=False, by=by, reason=why)
    write_audit_entry(
        row.tenant_id, by, verb=VERBS[state], object=f"tool:{row.name or row.tool}", before=before,
        after={"state": state, "seen": seen}, reason=why,
    )  # fmt: skip
    outdate_proposals(row.tenant_id, row.name)


def _switched_off(row: ServerTool) -> bool:
    """Return whether an admin has disabled the tool before."""
    return EmergencyStop.objects.filter(
        tenant_id=row.tenant_id, scope="tool", target=row.name, lifted_at=None, reason__startswith=DISABLED
    ).exists()


def _resolve_server_origin(tenant_id: UUID, new: NewServer) -> str:
    """Return the checked origin of a new server. Raises: InvalidInput, EgressRefused."""
    if new.kind == "stdio":
        if new.address not in list_server_commands():
            raise _build_input_error("/address", "The operator has allowed no such command.")
        return f"{STDIO}{new.address}"
    if new.kind != "http":
        raise _build_input_error("/kind", "It is http or stdio.")
    origin = target_of(new.address).origin
    with tenant_transaction(tenant_id):
        leave: EgressPolicy = leave_for(origin)
    look_before_saving(new.address, leave)
    return origin


def _check_name(slug: str) -> None:
    if not is_server_name(slug):
        raise _build_input_error("/slug", "Lower-case letters, digits and _, at most 31, a letter first.")
    families = {name.partition(".")[0] for name in shipped_tools()}
    taken = ToolVersion.objects.filter(slug__startswith=f"{slug}.")
    specs = [versions_of(name)[0].spec for name in taken.values_list("slug", flat=True).distinct()]
    others = any(spec.remote is None or spec.remote.server != slug for spec in specs)
    if slug in families or others or ToolServer.objects.filter(slug=slug, removed_at=None).exists():
        raise NameTaken(name=slug)


def _check_secret(tenant_id: UUID, new: NewServer, origin: str) -> None:
    if not new.secret:
        return
    held = next((one for one in secrets_of(tenant_id) if one.name == new.secret), None)
    if held is None:
        raise SecretUnusable(name=new.secret, detail="there is none of this name")
    if held.origin != origin:
        raise SecretUnusable(name=new.secret, detail=f"it is kept for {held.origin} alone")
    if not new.secret_header.replace("-", "").replace("_", "").isalnum() or len(new.secret_header) > 64:
        raise _build_input_error("/secret_header", "A header's name, or with stdio that of a variable.")
    if new.kind == "http" and new.secret_header.lower() in ("host", "cookie", "content-length"):
        raise _build_input_error("/secret_header", "This header is not yours to set.")


def _with_lookup(server: ToolServer, admission: Admission) -> Admission:
    """Return the admission with its look-up pinned: an admitted tool of the same server that only reads."""
    if admission.recovery != "lookup" or admission.lookup is None:
        return admission
    reader = ServerTool.objects.filter(server=server, tool=admission.lookup.tool, state="admitted").first()
    spec = versions_of(reader.name)[0].spec if reader is not None else None
    if (
        reader is None
        or spec is None
        or (spec.risk, spec.reversibility) != (Risk.READ_ONLY, Reversibility.PURE)
    ):
        raise _build_input_error("/lookup/tool", "An admitted tool of this server that only reads.")
    return admission.evolve(lookup=admission.lookup.evolve(definition=reader.admitted))


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": "not-allowed", "detail": detail}])

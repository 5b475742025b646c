"""Declaring a tool that is one HTTP request: no code, its secret by name (R-TOOL-20)."""

from uuid import UUID

from orchestrator.core.common.errors import NameTaken
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.guard_relaxation import describe_weaker_redeclaration
from orchestrator.core.tools.registration import HttpDeclaration, build_http_tool_spec
from orchestrator.publishing.actions.versions import (
    check_tool_queue,
    hold_registry,
    publish_registry,
    publish_tool,
)
from orchestrator.tools.actions.destinations import with_list
from orchestrator.tools.actions.tool_updates import switch_tool
from orchestrator.tools.gateways.egress.guarded_transport import look_before_saving
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.models.tool_server import ToolServer
from orchestrator.tools.queries.destinations import web_rules
from orchestrator.tools.queries.tool_servers import leave_for
from orchestrator.tools.queries.tools import ToolNow, registry_tools, tool_now, versions_of
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, SecretUnusable
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import ask_second
from tenancy.secret_store import secrets_of


def declare_http_tool(
    tenant_id: UUID,
    declaration: HttpDeclaration,
    *,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> ToolNow:
    """Publish an HTTP tool, or a new version of one, in the registry. Outermost verb: owns the transaction.

    Its address is judged as it would be when it is connected. Raises InvalidInput, DefinitionRefused,
    EgressRefused, SecretUnusable, NameTaken, SecondPersonNeeded (`agreed` is who agreed to what guards less).
    """
    look_at_declared(tenant_id, declaration)
    return declare_looked_at(tenant_id, declaration, by=by, reason=reason, agreed=agreed)


def look_at_declared(tenant_id: UUID, declaration: HttpDeclaration) -> None:
    """Judge where a declaration leads; it asks the network, so outside any transaction. Raises InvalidInput,
    DefinitionRefused, EgressRefused."""
    origin = _get_remote_origin(build_http_tool_spec(declaration))
    with tenant_transaction(tenant_id):
        leave = leave_for(origin)
    look_before_saving(origin, leave)


def declare_looked_at(
    tenant_id: UUID, declaration: HttpDeclaration, *, by: UUID | None, reason: str, agreed: UUID | None = None
) -> ToolNow:
    """Publish a declaration whose place was looked at. Joins or opens the tenant's transaction. Raises what
    `declare_http_tool` does."""
    spec = build_http_tool_spec(declaration)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        spec = with_list(spec, web_rules())
        before = _find_newest_spec(spec)
        _check_secret(tenant_id, spec)
        _check_verifier(spec)
        check_tool_queue(spec)
        tag = tool_now(tenant_id, spec.name).tag if before is not None else ""
        found = describe_weaker_redeclaration(before, spec)
        ask_second(tenant_id, spec.name, found, by=by, agreed=agreed, reason=reason, tag=tag)
        row = publish_tool(tenant_id, spec, by=by)
        publish_registry(tenant_id, {**registry_tools(), spec.name: row.digest}, by=by)
        switch_tool(tenant_id, spec.name, enabled=True, by=by, reason=reason)
        now = tool_now(tenant_id, spec.name)
        was = {"version": before.version, "risk": before.risk.value} if before is not None else {}
        after = {"version": now.spec.version, "risk": spec.risk.value, "origin": _get_remote_origin(spec)}
        if agreed is not None:
            after["agreed_by"] = str(agreed)
        write_audit_entry(
            tenant_id, by, verb="tool.declare", object=f"tool:{spec.name}", before=was, after=after,
            reason=reason,
        )  # fmt: skip
        return now


def _find_newest_spec(spec: ToolSpec) -> ToolSpec | None:
    """The tool's newest version, if it is an HTTP tool too. Raises NameTaken."""
    family = spec.name.partition(".")[0]
    known = versions_of(spec.name)
    other = bool(known) and (known[0].spec.remote is None or known[0].spec.remote.kind != "http")
    shipped = any(name.partition(".")[0] == family for name in shipped_tools())
    if other or shipped or ToolServer.objects.filter(slug=family, removed_at=None).exists():
        raise NameTaken(name=spec.name)
    return known[0].spec if known else None


def _get_remote_origin(spec: ToolSpec) -> str:
    assert spec.remote is not None
    return spec.remote.origin


def _check_secret(tenant_id: UUID, spec: ToolSpec) -> None:
    assert spec.remote is not None
    for name in spec.secrets:
        held = next((one for one in secrets_of(tenant_id) if one.name == name), None)
        if held is None:
            raise SecretUnusable(name=name, detail="there is none of this name")
        if held.origin != spec.remote.origin:
            raise SecretUnusable(name=name, detail=f"it is kept for {held.origin} alone")


def _check_verifier(spec: ToolSpec) -> None:
    """A read-back names an active tool that only reads (R-TOOL-12). Raises InvalidInput."""
    reader = spec.verifier.read_back if spec.verifier is not None else None
    if reader is None:
        return
    known = versions_of(reader.tool)
    if reader.tool not in registry_tools() or not known or known[0].spec.is_mutating:
        detail = "The read-back is an active tool that only reads."
        raise InvalidInput(
            errors=[{"pointer": "/verifier/read_back/tool", "code": "not-allowed", "detail": detail}]
        )

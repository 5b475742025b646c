"""Changing a tool: a new version for runs to come; what makes it stricter holds for running ones too
(R-TOOL-4)."""

from typing import Any
from uuid import UUID

from orchestrator.core.common.errors import Quarantined
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.guard_relaxation import describe_relaxations
from orchestrator.core.tools.tool_update import ToolChange, diff_tool_specs, with_tool_change
from orchestrator.publishing.actions.versions import (
    check_tool_queue,
    hold_registry,
    publish_registry,
    publish_tool,
)
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.tools.queries.tool_servers import quarantined_names
from orchestrator.tools.queries.tools import DISABLED, ToolNow, lowest_risk, registry_tools, tool_now
from tenancy.actions import write_audit_entry
from tenancy.core.errors import Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import ask_second


def change_tool(
    tenant_id: UUID,
    name: str,
    change: ToolChange,
    *,
    by: UUID | None,
    reason: str,
    expected: str | None = None,
    agreed: UUID | None = None,
) -> ToolNow:
    """Change a tool: a new version, which runs admitted from now on are pinned to. Outermost verb: owns the
    transaction.

    Runs under way keep theirs, but two things reach their next call: a tool that is disabled is closed to
    them, and one whose risk class is raised asks a person. `expected` is the tag of what was looked at,
    `agreed` the second administrator who agreed to what guards less. The same again changes nothing. Raises
    NotFound, InvalidInput, Stale, SecondPersonNeeded.
    """
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        before = tool_now(tenant_id, name)
        if expected is not None and expected != before.tag:
            raise Stale
        after = with_tool_change(before.spec, change)
        enabled = before.enabled if change.enabled is None else change.enabled
        if enabled and not before.enabled:
            not_quarantined(before.spec)
        ask_second(
            tenant_id,
            name,
            describe_relaxations(before.spec, after),
            by=by,
            agreed=agreed,
            reason=reason,
            tag=before.tag,
        )
        was, now = diff_tool_specs(before.spec, after)
        if was == now and enabled == before.enabled:
            return before
        if was != now:
            _publish_tool_version(tenant_id, after, enabled=enabled, by=by)
        if enabled != before.enabled:
            switch_tool(tenant_id, name, enabled=enabled, by=by, reason=reason)
            was["enabled"], now["enabled"] = before.enabled, enabled
        _keep_raised(tenant_id, after, by=by, reason=reason)
        standing = tool_now(tenant_id, name)
        if agreed is not None:
            now["agreed_by"] = str(agreed)
        _audit_tool_change(tenant_id, before, standing, was, now, by=by, reason=reason)
        return standing


def not_quarantined(spec: ToolSpec) -> None:
    """Raises Quarantined for a server's tool that is not as it was admitted: only an admission enables it."""
    waiting = quarantined_names().get(spec.name)
    if waiting is not None and spec.remote is not None:
        raise Quarantined(name=spec.name, server=spec.remote.server)


def _publish_tool_version(tenant_id: UUID, spec: ToolSpec, *, enabled: bool, by: UUID | None) -> None:
    row = publish_tool(tenant_id, spec, by=by)
    if enabled and spec.name in registry_tools():
        publish_registry(tenant_id, {**registry_tools(), spec.name: row.digest}, by=by)


def switch_tool(tenant_id: UUID, name: str, *, enabled: bool, by: UUID | None, reason: str) -> None:
    """Into the registry or out of it; and for the runs that are pinned to one that has it, a stop. Joins the
    caller's transaction, which holds the registry and writes the audit line."""
    active = dict(registry_tools())
    own = EmergencyStop.objects.filter(tenant_id=tenant_id, scope="tool", target=name, lifted_at=None)
    if enabled:
        now = tool_now(tenant_id, name)
        check_tool_queue(now.spec)
        active[name] = now.digest
        own.filter(reason__startswith=DISABLED).update(lifted_at=database_now(), lifted_by=by)
    else:
        active.pop(name, None)
        said = f"{DISABLED}{reason}"[:500]
        EmergencyStop.objects.create(
            scope="tool", tenant_id=tenant_id, target=name, reason=said, by=by, at=database_now()
        )
    publish_registry(tenant_id, active, by=by)


def _keep_raised(tenant_id: UUID, spec: ToolSpec, *, by: UUID | None, reason: str) -> None:
    """The class in force for runs that are pinned to a lower one: the newest version's, where any was
    lower."""
    own = EmergencyStop.objects.filter(tenant_id=tenant_id, scope="risk", target=spec.name, lifted_at=None)
    lowest = lowest_risk(spec.name)
    wanted = spec.risk.value if lowest is not None and lowest.rank < spec.risk.rank else ""
    standing = list(own.values_list("risk", flat=True))
    if standing == ([wanted] if wanted else []):
        return
    own.update(lifted_at=database_now(), lifted_by=by)
    if wanted:
        EmergencyStop.objects.create(
            scope="risk", tenant_id=tenant_id, target=spec.name, risk=wanted, reason=reason[:500], by=by,
            at=database_now(),
        )  # fmt: skip


def _audit_tool_change(
    tenant_id: UUID,
    before: ToolNow,
    after: ToolNow,
    was: dict[str, Any],
    now: dict[str, Any],
    *,
    by: UUID | None,
    reason: str,
) -> None:
    write_audit_entry(
        tenant_id, by, verb="tool.change", object=f"tool:{after.spec.name}",
        before={"version": before.spec.version, **was}, after={"version": after.spec.version, **now},
        reason=reason,
    )  # fmt: skip

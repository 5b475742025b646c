"""Mark a tool whose results no longer match its declared schema (R-TOOL-14).

The mark lasts until the tool has a new version or an administrator clears it.
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.runs.models.emergency_stop import EmergencyStop
from tenancy.actions import write_audit_entry
from tenancy.core.errors import NotFound
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from traces.core.events.trace_events import ParserDrifted, TraceEventBody


def note_drifts(hand: ClaimedRun, said: Iterable[TraceEventBody], at: datetime) -> None:
    """Mark the tools that drifted according to this commit, each once. Joins the commit's transaction."""
    for body in said:
        if isinstance(body, ParserDrifted) and not _has_drift_mark(hand.tenant, body.tool):
            reason = f"In the run {hand.run}: {body.detail}"[:500]
            EmergencyStop.objects.create(
                scope="drift", tenant_id=hand.tenant, target=body.tool, reason=reason, by=None, at=at
            )
            write_audit_entry(
                hand.tenant, None, verb="tool.drifted", object=f"tool:{body.tool}", before={},
                after={"version": body.tool_version, "run": str(hand.run)}, reason=reason,
            )  # fmt: skip


def clear_drift(tenant_id: UUID, name: str, *, by: UUID | None, reason: str) -> None:
    """Clear a tool's mark after an administrator has looked. Outermost verb: owns the transaction.

    Raises: NotFound if the tool has no mark.
    """
    with tenant_transaction(tenant_id):
        if not lift_drift(tenant_id, name, by=by):
            raise NotFound
        write_audit_entry(
            tenant_id, by, verb="tool.drift_cleared", object=f"tool:{name}", before={"drifted": True},
            after={"drifted": False}, reason=reason,
        )  # fmt: skip


def lift_drift(tenant_id: UUID, name: str, *, by: UUID | None) -> bool:
    """Remove a tool's mark and return whether there was one. Joins the caller's transaction.

    A person removes it, or a new version of the tool does.
    """
    marks = EmergencyStop.objects.filter(tenant_id=tenant_id, scope="drift", target=name, lifted_at=None)
    return bool(marks.update(lifted_at=database_now(), lifted_by=by))


def _has_drift_mark(tenant_id: UUID, name: str) -> bool:
    marks = EmergencyStop.objects.filter(tenant_id=tenant_id, scope="drift", target=name, lifted_at=None)
    return marks.exists()

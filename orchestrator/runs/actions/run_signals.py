"""Send signals to a run: the only way for anyone but its lease holder to affect it (docs/ring.md).

A signal is durable at once and never waits.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from orchestrator.core.accounting.settlement import is_effect_outcome
from orchestrator.core.common.errors import RunNotFound, RunOver
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.domain.run_events import AnyEvent
from orchestrator.runs.gateways.job_queue import enqueue_run
from orchestrator.runs.models.run import Run, RunSignal
from orchestrator.runs.queries.pending_signals import has_pending_park_signal, has_untaken
from tenancy.actions import write_audit_entry
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from traces.live import publish_change_hint


def leave_signal(
    tenant_id: UUID, run_id: UUID, kind: str, payload: Mapping[str, Any], by: UUID | None
) -> None:
    """Insert one signal and wake the run after commit. Joins the caller's transaction."""
    RunSignal.objects.create(
        tenant_id=tenant_id, run_id=run_id, kind=kind, payload=dict(payload), by=by, at=database_now()
    )
    transaction.on_commit(lambda: enqueue_run(run_id))


def ask_of_run(tenant_id: UUID, run_id: UUID, kind: str, *, by: UUID, reason: str) -> Run:
    """Ask a run to cancel, pause or resume: an operator's request, audited. Outermost verb: owns the
    transaction.

    Raises: RunNotFound; RunOver for a run that has ended.
    """
    with tenant_transaction(tenant_id):
        run = Run.objects.filter(id=run_id).first()
        if run is None:
            raise RunNotFound
        if Status(run.status) in TERMINAL_STATUSES:
            raise RunOver(status=run.status)
        leave_signal(tenant_id, run_id, kind, {"reason": reason}, by)
        transaction.on_commit(partial(publish_change_hint, tenant_id, run_id))
        write_audit_entry(
            tenant_id,
            by,
            verb=f"run.{kind}",
            object=f"run:{run_id}",
            before={"status": run.status},
            after={"asked": kind},
            reason=reason,
        )
        return run


def cancel(tenant_id: UUID, run_id: UUID, *, by: UUID, reason: str) -> Run:
    """Ask the run to stop; what is in flight is recorded first."""
    return ask_of_run(tenant_id, run_id, "cancel", by=by, reason=reason)


def pause(tenant_id: UUID, run_id: UUID, *, by: UUID, reason: str) -> Run:
    """Ask the run to hold before its next effect."""
    return ask_of_run(tenant_id, run_id, "pause", by=by, reason=reason)


def resume(tenant_id: UUID, run_id: UUID, *, by: UUID, reason: str) -> Run:
    """Ask a paused run to go on."""
    return ask_of_run(tenant_id, run_id, "resume", by=by, reason=reason)


def quarantine_run(tenant_id: UUID, run_id: UUID, takeovers: int) -> None:
    """Park a run whose workers keep dying (D9). Only one such signal waits at a time."""
    reason = f"poison run: {takeovers} workers died while they held it"
    with tenant_transaction(tenant_id):
        if not has_pending_park_signal(run_id):
            leave_signal(tenant_id, run_id, "pause", {"reason": reason}, None)


def leave_late_outcomes(hand: Any, events: Sequence[AnyEvent], bodies: Mapping[str, bytes]) -> None:
    """Store the outcomes that a worker received after it lost its lease (G9).

    The run's current worker records them.
    """
    late = [event for event in events if is_effect_outcome(event)]
    if not late:
        return
    with tenant_transaction(hand.tenant):
        for event in late:
            said = event.model_dump(mode="json")
            observation = said.get("observation") or said.get("detail") or said.get("reply")
            body = bodies.get(observation or "")
            leave_signal(
                hand.tenant,
                hand.run,
                "late",
                {
                    "effect": event.effect,
                    "status": said.get("error") or said.get("resolution") or said["kind"],
                    "observation": body.decode("utf-8", "backslashreplace")[:20_000] if body else None,
                },
                None,
            )


def has_untaken_signals(tenant_id: UUID, run_id: UUID) -> bool:
    """Return whether any signal waits for the run."""
    with tenant_transaction(tenant_id):
        return has_untaken(run_id)

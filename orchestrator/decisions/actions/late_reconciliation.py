"""Reconcile, or have looked up, a change that was in doubt when its run ended (R-TOOL-9)."""

from datetime import datetime
from functools import partial
from typing import Any, Literal
from uuid import UUID

import orjson
from django.db import transaction

from approvals.core.errors import NotYours
from approvals.core.policy import explain_decision_refusal
from approvals.queries.people import AuthorizedPrincipal, decider_of
from orchestrator.core.admission.errors import RunNotFound
from orchestrator.core.approval.errors import EffectNotInDoubt, NoLookUp, RunUnderWay
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.domain.effects import SentChange
from orchestrator.core.engine.late_reconciliation import DoubtfulChange
from orchestrator.decisions.queries.in_doubt_changes import asked_about, doubts_of, is_looked_up_by
from orchestrator.runs.actions.run_signals import leave_signal
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.pending_signals import is_asked_of_effect
from tenancy.actions import write_audit_entry
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.queries import standing_of
from traces.live import publish_change_hint

LONGEST_REASON = 500
VERDICTS: tuple[Literal["happened"], Literal["not_happened"]] = ("happened", "not_happened")


def reconcile_late_effect(
    tenant_id: UUID,
    run_id: UUID,
    effect: str,
    *,
    by: UUID,
    verdict: Literal["happened", "not_happened"],
    reason: str,
) -> Run:
    """Record whether an in-doubt change of an ended run happened. Outermost verb: owns the transaction.

    The run's next record takes the verdict; the end of the run stays as it is.

    Raises: RunNotFound, RunUnderWay, EffectNotInDoubt (no verdict is needed, or one was recorded before),
    NotYours.
    """
    given = {"verdict": verdict, "reason": reason[:LONGEST_REASON]}
    return _send_late_signal(tenant_id, run_id, effect, "reconciled", by, given)


def ask_look_up(tenant_id: UUID, run_id: UUID, effect: str, *, by: UUID) -> Run:
    """Request the look-up of an in-doubt change of an ended run, as its tool declares it.

    A worker performs the look-up and records the result. Outermost verb: owns the transaction.

    Raises: as `reconcile_late_effect`, and NoLookUp.
    """
    return _send_late_signal(tenant_id, run_id, effect, "look_up", by, {})


def _send_late_signal(
    tenant_id: UUID, run_id: UUID, effect: str, kind: str, by: UUID, given: dict[str, Any]
) -> Run:
    with tenant_transaction(tenant_id):
        # Of two concurrent callers, the second finds the signal of the first.
        run = Run.objects.select_for_update().filter(id=run_id).first()
        if run is None:
            raise RunNotFound
        change = _get_in_doubt_change(run, effect).change
        _check_may_say(run, change, by, database_now())
        if is_asked_of_effect(run.id, kind, effect):
            raise EffectNotInDoubt(why="it was asked for a moment ago and is being recorded")
        if kind == "look_up" and not is_looked_up_by(run, change.tool):
            raise NoLookUp(tool=change.tool)
        payload = {"change": orjson.loads(change.model_dump_json()), **given}
        leave_signal(tenant_id, run_id, kind, payload, by)
        transaction.on_commit(partial(publish_change_hint, tenant_id, run_id))
        _audit_late_signal(tenant_id, run, change, kind, by, given)
        return run


def _get_in_doubt_change(run: Run, effect: str) -> DoubtfulChange:
    if Status(run.status) not in TERMINAL_STATUSES:
        raise RunUnderWay(status=run.status)
    found = next((one for one in doubts_of(run) if one.change.effect == effect), None)
    if found is None:
        raise EffectNotInDoubt(why="it is known what became of it, or the run never asked for it")
    return found


def _check_may_say(run: Run, change: SentChange, by: UUID, at: datetime) -> None:
    """Check that the rules of deciding let this principal judge the change.

    Raises: NotYours; RunNotFound for a principal without access.
    """
    standing = standing_of(run.tenant_id, by)
    if standing is None:
        raise RunNotFound
    why = explain_decision_refusal(asked_about(run, change), decider_of(standing, at))
    if why is not None:
        raise NotYours(reason=why.sentence, rule=why.rule.value)


def why_not(run: Run, change: SentChange, who: AuthorizedPrincipal) -> str:
    """Return in a sentence why an actor may not judge a change, "" if permitted. Call in the tenant's
    context.
    """
    found = explain_decision_refusal(asked_about(run, change), decider_of(who))
    return found.sentence if found is not None else ""


def _audit_late_signal(
    tenant_id: UUID, run: Run, change: SentChange, kind: str, by: UUID, given: dict[str, Any]
) -> None:
    write_audit_entry(
        tenant_id,
        by,
        verb="run.reconcile" if kind == "reconciled" else "run.look_up",
        object=f"run:{run.id}",
        before={"status": run.status},
        after={"effect": change.effect, "tool": change.tool, "verdict": given.get("verdict", "")},
        reason=given.get("reason", ""),
    )

"""A yes that was kept back: taking it back, and letting it take effect when its time has come."""

from datetime import timedelta
from uuid import UUID

import orjson
import structlog

from approvals.actions import PENDING, DecisionInput, decide_request
from approvals.actions.grace_period import end_deferred_approval
from approvals.core.errors import ApprovalError, NothingToUndo, NotYours, RequestNotFound
from approvals.core.lifecycle import DecisionKind
from approvals.core.undo import Fate
from approvals.models import Deferral, Request
from approvals.queries.undo import STANDS, may_undo, moment_of
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.queries import standing_of

log = structlog.get_logger(__name__)
GONE = "whoever said it may decide nothing here any more"


def undo_deferred_approval(
    tenant_id: UUID, request_id: UUID, principal_id: UUID, *, deferral: UUID | None = None
) -> Request:
    """Take a yes back while it can be; the request waits as before. Outermost verb: owns the transaction.

    Whoever said it may, by any of their keys that decides too, and an administrator. `deferral` is the yes
    that is meant; without it the one that stands. Raises RequestNotFound (404), NothingToUndo (409: too late,
    there is none, or it is another), NotYours (403).
    """
    with tenant_transaction(tenant_id):
        request = Request.objects.select_for_update().filter(id=request_id).first()
        moment, who = moment_of(request_id), standing_of(tenant_id, principal_id)
        if request is None or who is None:
            raise RequestNotFound
        if request.status != PENDING:
            raise NothingToUndo(detail=f"the request was already {request.status}")
        standing = moment.standing
        if standing is None:
            raise NothingToUndo(detail="no yes to this request stands")
        if not may_undo(who, standing):
            raise NotYours(reason="whoever said yes takes it back, or an administrator", rule="undo")
        if deferral is not None and deferral != standing.id:
            raise NothingToUndo(detail="another yes than this one stands")
        if moment.at >= standing.effective_at:
            raise NothingToUndo(detail=f"it took effect at {standing.effective_at.isoformat()}")
        end_deferred_approval(request, standing.id, Fate.UNDONE, moment.at, by=who.principal)
        return request


def take_effect(tenant_id: UUID, run_id: UUID) -> timedelta | None:
    """Let each yes to a run's requests take effect whose time has come, as if it were said now: by every
    check that `decide_request` makes. One that does not pass lapses, and the request waits as before.

    One that fails for a reason that is none of theirs still stands, and keeps no other from its turn. Returns
    how long it is until the next one's time; None where none waits, and where some had their time: who comes
    then was told of the next one, too. Outermost verb: a transaction for each.
    """
    with tenant_transaction(tenant_id):
        now = database_now()
        rows = Deferral.objects.filter(run_id=run_id, fate=STANDS).order_by("effective_at", "id")
        standing = list(rows)
    due = [one for one in standing if one.effective_at <= now]
    for one in due:
        try:
            _apply_deferred_approval(one)
        except Exception:
            log.exception(
                "approval.deferred_decision_failed", request=str(one.request_id), deferral=str(one.id)
            )
    return standing[0].effective_at - now if standing and not due else None


def _apply_deferred_approval(one: Deferral) -> None:
    arguments = None if one.arguments is None else orjson.loads(bytes(one.arguments))
    word = DecisionInput(
        kind=DecisionKind(one.kind), reason=one.reason, arguments=arguments, packet_digest=one.packet_digest
    )
    try:
        decide_request(one.tenant_id, one.request_id, one.principal, word, deferral=one.id)
    except ApprovalError as error:
        _lapse_deferred_approval(one, _explain_lapse(error))


def _lapse_deferred_approval(one: Deferral, because: str) -> None:
    """It comes to nothing; one that has ended meanwhile stays as it is."""
    with tenant_transaction(one.tenant_id):
        request = Request.objects.select_for_update().get(id=one.request_id)
        end_deferred_approval(request, one.id, Fate.LAPSED, database_now(), by=None, because=because)


def _explain_lapse(error: ApprovalError) -> str:
    if isinstance(error, RequestNotFound):
        return GONE
    return str(error.data["reason"]) if isinstance(error, NotYours) else str(error)

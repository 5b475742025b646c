"""A yes that was kept back: taking it back, and letting it take effect when its time has come."""

from datetime import datetime, timedelta
from uuid import UUID

import orjson

from approvals.actions import Word, decide
from approvals.actions.deferring import end
from approvals.core.errors import ApprovalError, NothingToUndo, NotYours, RequestNotFound
from approvals.core.lifecycle import DecisionKind
from approvals.core.undoing import Fate
from approvals.models import Deferral, Request
from approvals.queries.undoing import STANDS, moment_of
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.roles import Scope
from tenancy.queries import standing_of

GONE = "whoever said it may decide nothing here any more"


def undo(tenant_id: UUID, request_id: UUID, principal_id: UUID) -> Request:
    """Take a yes back while it can be; the request waits as before. Outermost verb: owns the transaction.

    Whoever said it may, by any of their keys too, and an administrator. Raises RequestNotFound (404),
    NothingToUndo (409: too late, or there is none), NotYours (403).
    """
    with tenant(tenant_id):
        request = Request.objects.select_for_update().filter(id=request_id).first()
        moment, who = moment_of(request_id), standing_of(tenant_id, principal_id)
        if request is None or who is None:
            raise RequestNotFound
        standing = moment.standing
        if standing is None:
            raise NothingToUndo(detail="no yes to this request stands")
        if standing.owner != who.owner and Scope.ADMIN not in who.scopes:
            raise NotYours(reason="whoever said yes takes it back, or an administrator", rule="undo")
        if moment.at >= standing.effective_at:
            raise NothingToUndo(detail=f"it took effect at {standing.effective_at.isoformat()}")
        end(request, standing.id, Fate.UNDONE, moment.at, by=who.principal)
        return request


def take_effect(tenant_id: UUID, run_id: UUID) -> timedelta | None:
    """Let each yes to a run's requests take effect whose time has come, as if it were said now: by every
    check that `decide` makes. One that does not pass lapses, and the request waits as before.

    Returns how long it is until the next one's time, None where none waits. Outermost verb: a transaction
    for each.
    """
    with tenant(tenant_id):
        now = database_now()
        rows = Deferral.objects.filter(run_id=run_id, fate=STANDS).order_by("effective_at", "id")
        standing = list(rows)
    due = [one for one in standing if one.effective_at <= now]
    for one in due:
        _take(one)
    return _until(standing[len(due) :], now)


def _until(waiting: list[Deferral], now: datetime) -> timedelta | None:
    return waiting[0].effective_at - now if waiting else None


def _take(one: Deferral) -> None:
    arguments = None if one.arguments is None else orjson.loads(bytes(one.arguments))
    word = Word(
        kind=DecisionKind(one.kind), reason=one.reason, arguments=arguments, packet_digest=one.packet_digest
    )
    try:
        decide(one.tenant_id, one.request_id, one.principal, word, deferral=one.id)
    except ApprovalError as error:
        _lapse(one, _why(error))


def _lapse(one: Deferral, because: str) -> None:
    """It comes to nothing; one that has ended meanwhile stays as it is."""
    with tenant(one.tenant_id):
        request = Request.objects.select_for_update().get(id=one.request_id)
        end(request, one.id, Fate.LAPSED, database_now(), by=None, because=because)


def _why(error: ApprovalError) -> str:
    if isinstance(error, RequestNotFound):
        return GONE
    return str(error.data["reason"]) if isinstance(error, NotYours) else str(error)

"""Keeping a yes back for some seconds, and its end (docs/console.md). All of it joins the caller's
transaction, which holds the request's row."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from approvals.core.errors import AlreadyDecided, NothingToUndo, YesStands
from approvals.core.lifecycle import DecisionKind
from approvals.core.undo import Fate, effective_at, keeps_back
from approvals.models import Decision, Deferral, Request
from approvals.queries.people import Stands, names_of
from approvals.queries.undo import STANDS, Moment
from approvals.signals import YesDeferred, yes_deferred
from tenancy.actions import write_audit_entry
from tenancy.db.ids import fresh_id
from traces.live import publish_change_hint

VERBS = {Fate.UNDONE: "approval.undo", Fate.LAPSED: "approval.lapse"}


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """What was said: to the request as it is (no arguments), or to other arguments, in canonical form."""

    kind: DecisionKind
    reason: str
    arguments: bytes | None


def kept_until(
    request: Request, word: DecisionKind, risk: str, quorum: int, moment: Moment
) -> datetime | None:
    """Until when a word can be taken back; None where it counts at once. `risk` and `quorum` are those of
    what it agrees to."""
    seconds = moment.seconds
    if not keeps_back(seconds=seconds, kind=request.kind, word=word, risk=risk, quorum=quorum):
        return None
    return effective_at(moment.at, seconds, request.expires_at)


def defer_approval(
    request: Request, who: Stands, yes: PendingApproval, at: datetime, until: datetime
) -> None:
    """Keep a yes back until a moment; whoever drives runs is told to look then. Raises AlreadyDecided for a
    person's second word. The request says what was kept (`kept`)."""
    if Decision.objects.filter(request_id=request.id, owner=who.owner).exists():
        raise AlreadyDecided(status="decided by you")
    request.kept = Deferral.objects.create(
        id=fresh_id(), tenant_id=request.tenant_id, request=request, run_id=request.run_id,
        principal=who.principal, owner=who.owner, kind=yes.kind.value, reason=yes.reason,
        arguments=yes.arguments, packet_digest=request.packet_digest, at=at, effective_at=until,
    )  # fmt: skip
    after = {"said": yes.kind.value, "effective_at": until.isoformat()}
    _audit_deferral(request, who.principal, "approval.defer", after)
    news = YesDeferred(
        tenant_id=request.tenant_id, run_id=request.run_id, seconds=(until - at).total_seconds()
    )
    yes_deferred.send(sender=Deferral, deferred=news)
    _publish_request_change(request)


def make_way(request: Request, moment: Moment, deferral: UUID | None) -> None:
    """Let a word be taken: nobody's yes stands, or it is the one that takes effect by this word.

    Raises YesStands where another's does, NothingToUndo where the one that should take effect does not stand
    or its time has not come.
    """
    standing = moment.standing
    if deferral is None:
        if standing is not None:
            name = names_of([standing.principal]).get(standing.principal, "somebody")
            raise YesStands(name=name, effective_at=standing.effective_at.isoformat())
        return
    due = standing is not None and standing.id == deferral and moment.at >= standing.effective_at
    if not due or not _mark_deferral_ended(deferral, Fate.TAKEN, moment.at, by=None, because=""):
        raise NothingToUndo(detail="it does not stand any more")


def end_deferred_approval(
    request: Request, deferral: UUID, fate: Fate, at: datetime, *, by: UUID | None, because: str = ""
) -> bool:
    """Let a yes come to nothing, on record; False where it has ended already."""
    ended = _mark_deferral_ended(deferral, fate, at, by=by, because=because)
    if ended:
        _audit_deferral(request, by, VERBS[fate], {"yes": str(deferral), "because": because})
        _publish_request_change(request)
    return ended


def _mark_deferral_ended(deferral: UUID, fate: Fate, at: datetime, *, by: UUID | None, because: str) -> bool:
    return bool(
        Deferral.objects.filter(id=deferral, fate=STANDS).update(
            fate=fate.value, ended_at=at, ended_by=by, ended_because=because[:300]
        )
    )


def _audit_deferral(request: Request, by: UUID | None, verb: str, after: dict[str, Any]) -> None:
    write_audit_entry(
        request.tenant_id, by, verb=verb, object=f"request:{request.id}",
        before={"tool": request.tool, "run": str(request.run_id)}, after=after,
    )  # fmt: skip


def _publish_request_change(request: Request) -> None:
    """Whoever looks at the request or its run sees it change, once the transaction has committed."""
    transaction.on_commit(partial(publish_change_hint, request.tenant_id, request.run_id))

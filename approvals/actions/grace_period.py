"""Deferral of an approval for some seconds, and its end (docs/console.md).

All functions join the caller's transaction, which holds the lock on the request's row.
"""

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
from approvals.queries.people import AuthorizedPrincipal, names_of
from approvals.queries.undo import STANDS, Moment
from approvals.signals import YesDeferred, yes_deferred
from tenancy.actions import write_audit_entry
from tenancy.db.ids import fresh_id
from traces.live import publish_change_hint

VERBS = {Fate.UNDONE: "approval.undo", Fate.LAPSED: "approval.lapse"}


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """An approval to be deferred: of the request as it is (no arguments), or of edited arguments.

    `arguments` are in canonical form.
    """

    kind: DecisionKind
    reason: str
    arguments: bytes | None


def kept_until(
    request: Request, word: DecisionKind, risk: str, quorum: int, moment: Moment
) -> datetime | None:
    """Return the time until which a decision can be undone; None if it takes effect at once.

    `risk` and `quorum` are those of the packet or arguments that it agrees to.
    """
    seconds = moment.seconds
    if not keeps_back(seconds=seconds, kind=request.kind, word=word, risk=risk, quorum=quorum):
        return None
    return effective_at(moment.at, seconds, request.expires_at)


def defer_approval(
    request: Request, who: AuthorizedPrincipal, yes: PendingApproval, at: datetime, until: datetime
) -> None:
    """Defer an approval until `until` and signal the run driver to check then.

    The deferral is set on the request (`kept`).

    Raises: AlreadyDecided for a second decision by the same person.
    """
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
    """Check that a decision may be recorded now, given the deferrals of the request.

    Either no approval is deferred, or the deferred one is the due one named `deferral`, which is marked as
    taken.

    Raises: YesStands if another approval is deferred, NothingToUndo if the named deferral is no longer
      pending or not due.
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
    """End a deferred approval without effect and audit it; False if it has ended already."""
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
    """Notify viewers of the request and its run once the transaction has committed."""
    transaction.on_commit(partial(publish_change_hint, request.tenant_id, request.run_id))

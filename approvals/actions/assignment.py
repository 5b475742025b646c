"""Actions on a request other than deciding it: assignment, snooze, comments (R-APPR-9)."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from approvals.core.assignment import AssignmentAction, derive_assignee, snooze_fault
from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours, RequestNotFound
from approvals.core.lifecycle import RequestStatus
from approvals.core.policy import Refusal, explain_decision_refusal
from approvals.models import Handling, Request
from approvals.queries.assignment import handled_of
from approvals.queries.people import AuthorizedPrincipal, asked_of, decider_of, names_of
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.queries import standing_of
from traces.core.canonical import canonical_outside
from traces.core.errors import NotCanonical
from traces.live import publish_change_hint

LONGEST_COMMENT = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentChange:
    """An action that a person wants to take on a request.

    `to` is the new assignee's principal, for an assignment; `until` is the time at which a snooze ends.
    """

    kind: AssignmentAction
    to: UUID | None = None
    until: datetime | None = None
    text: str = ""


def update_assignment(
    tenant_id: UUID, request_id: UUID, principal_id: UUID, wish: AssignmentChange
) -> Request:
    """Perform the action and record it. Outermost action: owns the transaction.

    A person who may decide the request may do all of it; an administrator may assign, release and comment
    too.

    Raises: RequestNotFound (404), NotYours (403), AlreadyDecided (409: settled, or claimed by another),
      DecisionInvalid (422).
    """
    with tenant_transaction(tenant_id):
        request = Request.objects.select_for_update().filter(id=request_id).first()
        who = standing_of(tenant_id, principal_id)
        if request is None or who is None:
            raise RequestNotFound
        at = database_now()
        _check_assignment_permitted(request, who, wish)
        to = _resolve_assignee(request, who, wish)
        if wish.kind is AssignmentAction.SNOOZE:
            _check_snooze(request, wish, at)
        Handling.objects.create(
            id=fresh_id(), tenant_id=tenant_id, request=request, principal=who.principal, owner=who.owner,
            kind=wish.kind.value, to=to, until=wish.until if wish.kind is AssignmentAction.SNOOZE else None,
            text=_validate_comment_text(wish), at=at,
        )  # fmt: skip
        transaction.on_commit(partial(publish_change_hint, tenant_id, request.run_id))
        return request


def _check_assignment_permitted(request: Request, who: AuthorizedPrincipal, wish: AssignmentChange) -> None:
    why = explain_decision_refusal(asked_of(request), decider_of(who))
    manages = Scope.ADMIN in who.scopes and wish.kind in (
        AssignmentAction.ASSIGN,
        AssignmentAction.RELEASE,
        AssignmentAction.COMMENT,
    )
    if why is not None and not manages:
        raise _not_yours(why)
    if wish.kind is not AssignmentAction.COMMENT and request.status != RequestStatus.PENDING:
        raise AlreadyDecided(status=request.status)


def _not_yours(why: Refusal) -> NotYours:
    return NotYours(reason=why.sentence, rule=why.rule.value)


def _resolve_assignee(request: Request, who: AuthorizedPrincipal, wish: AssignmentChange) -> UUID | None:
    """Return the assignee after the action.

    A claim never takes a request from another person; an assignment may, and names the new assignee.

    Raises: AlreadyDecided if another person has claimed it, DecisionInvalid for a release or assignment
      that does not fit.
    """
    now = derive_assignee(handled_of([request.id])[request.id])
    if wish.kind is AssignmentAction.CLAIM:
        if now and now != str(who.principal):
            name = names_of([UUID(now)]).get(UUID(now), "somebody")
            raise AlreadyDecided(status=f"claimed by {name}")
        return who.principal
    if wish.kind is AssignmentAction.RELEASE and not now:
        raise DecisionInvalid(detail="it is nobody's already")
    if wish.kind is not AssignmentAction.ASSIGN:
        return None
    other = None if wish.to is None else standing_of(request.tenant_id, wish.to)
    if other is None:
        raise DecisionInvalid(detail="nobody of this tenant is named", pointer="/to")
    if (why := explain_decision_refusal(asked_of(request), decider_of(other))) is not None:
        raise DecisionInvalid(detail=f"they may not decide it: {why.sentence}", pointer="/to")
    return other.principal


def _check_snooze(request: Request, wish: AssignmentChange, at: datetime) -> None:
    if wish.until is None:
        raise DecisionInvalid(detail="until when is missing", pointer="/until")
    if fault := snooze_fault(wish.until, at, request.expires_at):
        raise DecisionInvalid(detail=fault, pointer="/until")


def _validate_comment_text(wish: AssignmentChange) -> str:
    text = wish.text.strip() if wish.kind is AssignmentAction.COMMENT else ""
    if wish.kind is AssignmentAction.COMMENT and not text:
        raise DecisionInvalid(detail="the remark has no text", pointer="/text")
    try:
        canonical_outside(text)
    except NotCanonical:
        raise DecisionInvalid(detail="the remark is no text", pointer="/text") from None
    if len(text) > LONGEST_COMMENT or "\0" in text:
        detail = f"a remark has at most {LONGEST_COMMENT} characters, none of them NUL"
        raise DecisionInvalid(detail=detail, pointer="/text")
    return text

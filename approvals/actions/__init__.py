"""Actions of approvals: the only writers of requests, decisions and grants."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
from django.db import IntegrityError, transaction

from approvals.actions.decision_log import log_decision
from approvals.actions.grace_period import PendingApproval, defer_approval, kept_until, make_way
from approvals.actions.new_request import NewRequest
from approvals.actions.reveal import keep_sealed
from approvals.actions.sealed_arguments import sealed_answer
from approvals.core.allowed_decisions import list_allowed_decisions, unfit_words, why_not_back
from approvals.core.digests import decision_digest
from approvals.core.errors import (
    AlreadyDecided,
    DecisionInvalid,
    Expired,
    NotYours,
    PacketChanged,
    RequestNotFound,
)
from approvals.core.lifecycle import (
    AGREEING,
    CAUSES,
    FITTING,
    GIVING,
    MOVES,
    Cause,
    DecisionKind,
    RequestStatus,
)
from approvals.core.packet import read_packet
from approvals.core.policy import Decider, Refusal, RequestFacts, explain_decision_refusal
from approvals.core.quorum import agreement_refusal, has_quorum
from approvals.models import Decision, GrantUse, Request
from approvals.ports import EditJudgement, check_extension
from approvals.queries import decisions_of
from approvals.queries.countable_votes import counting_votes
from approvals.queries.edits import judge_edit
from approvals.queries.people import asked_of, decider_of
from approvals.queries.undo import Moment, moment_of
from approvals.signals import Settlement, request_settled
from tenancy.core.json_schema.cost import ApplicationCounter, short_verdict
from tenancy.core.json_schema.validation import validator_of
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.queries import PrincipalAuthority, standing_of
from traces.core.canonical import canonical_outside
from traces.core.errors import NotCanonical
from traces.live import publish_change_hint

PENDING = RequestStatus.PENDING.value
LONGEST_REASON, LARGEST_ANSWER = 4_000, 65_536
CONSUME = """
INSERT INTO approvals_grantuse (tenant_id, id, effect_id, action_digest, at)
SELECT tenant_id, id, %(effect)s::text, %(action)s::text, %(at)s::timestamptz FROM approvals_request
 WHERE tenant_id = %(tenant)s AND id = %(request)s AND status = 'decided' AND outcome IN ('approve', 'edit')
   AND granted_action = %(action)s
   AND settled_at + make_interval(secs => grant_seconds) > %(at)s
ON CONFLICT (id) DO NOTHING RETURNING id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInput:
    """A person's decision on a request. `packet_digest` is that of the packet seen (optional for keys)."""

    kind: DecisionKind
    reason: str = ""
    arguments: Any = None
    amounts: Mapping[str, Any] | None = None
    answer: Any = None
    packet_digest: str | None = None


@dataclass(frozen=True, slots=True)
class UnusableGrant:
    """A grant that cannot be used, and the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class ConsumedGrant:
    """A grant that was used up by this very call."""


def open_request(tenant_id: UUID, new: NewRequest, at: datetime) -> Request:
    """Create a request to people. Joins the ring's transaction."""
    given = {field.name: getattr(new, field.name) for field in fields(new)}
    given |= {"retriers": list(new.retriers), "retrier_owners": list(new.retrier_owners)}
    if new.answer_schema is not None:
        given["answer_schema"] = dict(new.answer_schema)
    return Request.objects.create(tenant_id=tenant_id, created_at=at, **given)


def decide_request(
    tenant_id: UUID,
    request_id: UUID,
    principal_id: UUID,
    word: DecisionInput,
    *,
    deferral: UUID | None = None,
) -> Request:
    """Record one person's decision. Outermost action: owns the transaction.

    Authority and limits are read now, from the database (A13). If the tenant has configured an undo window,
    a low-risk approval is stored as a deferral first and the request stays pending (`kept` is that
    deferral). `deferral` names a deferred approval that is due.
    Raises: RequestNotFound (404), NotYours (403), AlreadyDecided (409), YesStands (409), PacketChanged
      (409), Expired (410), DecisionInvalid (422); with a `deferral` NothingToUndo if it is no longer
      pending or not due.
    """
    with tenant_transaction(tenant_id):
        request = Request.objects.select_for_update().filter(id=request_id).first()
        # Read after the row is locked: a decision that waited for the lock past the expiry is too late.
        moment = moment_of(request_id)
        at, standing = moment.at, standing_of(tenant_id, principal_id)
        if request is None or standing is None:
            raise RequestNotFound
        expired = request.status == PENDING and at >= request.expires_at
        if expired:
            _settle_request(request, Cause.TIME_UP, at)
        else:
            _decide_pending(request, standing, word, moment, deferral)
    if expired:
        raise Expired(expires_at=request.expires_at.isoformat())
    return request


def _decide_pending(
    request: Request, standing: PrincipalAuthority, word: DecisionInput, moment: Moment, deferral: UUID | None
) -> None:
    asked, decider = asked_of(request), decider_of(standing, moment.at)
    _check_decider_permitted(asked, decider)
    if request.status == RequestStatus.EXPIRED:
        raise Expired(expires_at=request.expires_at.isoformat())
    if request.status != PENDING:
        raise AlreadyDecided(status=request.status)
    make_way(request, moment, deferral)
    if word.packet_digest is not None and word.packet_digest != request.packet_digest:
        raise PacketChanged(packet_digest=request.packet_digest)
    _check_decision_fits_kind(request, word)
    if word.kind is DecisionKind.REVISE:
        _check_request_changes_allowed(request, word)
    agreed = _evaluate_agreement(request, word)
    if word.kind in (DecisionKind.EDIT, DecisionKind.EXTEND):
        asked = asked.with_stakes(agreed.amount, agreed.risk, sealed=agreed.holds_sealed)
        _check_decider_permitted(asked, decider)
    if word.kind in AGREEING and agreed.quorum > 1:
        votes = counting_votes(request, decisions_of(request.id), asked, moment.at)
        _check_allowed(agreement_refusal(votes, agreed.body, decider))
    keep_sealed(request.tenant_id, request.run_id, agreed.sealed)
    if deferral is None and (until := kept_until(request, word.kind, asked.risk, agreed.quorum, moment)):
        defer_approval(
            request,
            standing,
            PendingApproval(word.kind, _validate_reason(word), agreed.body),
            moment.at,
            until,
        )
        return
    decision = _record_decision(request, standing, word, agreed, moment.at)
    log_decision(request, decision)
    _publish_request_change(request)
    if word.kind in AGREEING and agreed.quorum > 1:
        votes = counting_votes(request, decisions_of(request.id), asked, moment.at)
        if not has_quorum(votes, agreed.body, agreed.quorum):
            return
    _settle_request(request, CAUSES[word.kind], moment.at, decision=decision, granted=agreed.action_digest)


def _check_decision_fits_kind(request: Request, word: DecisionInput) -> None:
    """Check that the decision's kind fits the request and that it has no field of another kind.

    An approval with other arguments, for example, does not mean the arguments that were asked for.
    Raises: DecisionInvalid.
    """
    if word.kind not in FITTING[request.kind]:
        raise DecisionInvalid(detail=f"{word.kind.value} is no answer to a request for {request.kind}")
    for name in GIVING.values():
        if name != GIVING.get(word.kind) and getattr(word, name) is not None:
            raise DecisionInvalid(detail=f"{word.kind.value} takes no {name}", pointer=f"/{name}")


def _check_request_changes_allowed(request: Request, word: DecisionInput) -> None:
    """Check that the request can be sent back and that the reason gives the agent something to act on.
    Raises: DecisionInvalid.
    """
    packet = read_packet(bytes(request.packet))
    if word.kind not in list_allowed_decisions(packet):
        raise DecisionInvalid(detail=f"it cannot be sent back: {why_not_back(packet)}", pointer="/decision")
    if fault := unfit_words(word.reason):
        raise DecisionInvalid(detail=f"to send it back, say {fault}", pointer="/reason")


def _check_decider_permitted(asked: RequestFacts, decider: Decider) -> None:
    _check_allowed(explain_decision_refusal(asked, decider))


def _check_allowed(why: Refusal | None) -> None:
    if why is not None:
        raise NotYours(reason=why.sentence, rule=why.rule.value)


def _evaluate_agreement(request: Request, word: DecisionInput) -> EditJudgement:
    """Evaluate the subject of an approval: the packet as shown (no body), or the judged edit.

    Edited arguments need the quorum of the amount and risk they involve. A further person agrees to them by
    submitting the same edit.
    Raises: DecisionInvalid.
    """
    if word.kind is DecisionKind.EXTEND:
        return _evaluate_budget_extension(request, word)
    if word.kind is not DecisionKind.EDIT:
        return EditJudgement(None, quorum=request.quorum, action_digest=request.action_digest)
    return judge_edit(request, word.arguments)


def _evaluate_budget_extension(request: Request, word: DecisionInput) -> EditJudgement:
    """Evaluate the amounts of an extension as they are granted.
    Raises: DecisionInvalid.
    """
    judged = check_extension(request.tenant_id, request.run_id, bytes(request.packet), word.amounts or {})
    if judged.body is None:
        pointer = f"/amounts/{judged.field}" if judged.field in (word.amounts or {}) else "/amounts"
        raise DecisionInvalid(detail=judged.refusal, pointer=pointer)
    return judged


def _encode_answer(request: Request, word: DecisionInput) -> bytes | None:
    if word.kind is not DecisionKind.ANSWER:
        return None
    try:
        kept = canonical_outside(word.answer)
    except NotCanonical as error:
        raise DecisionInvalid(detail=str(error), pointer="/answer") from None
    if len(kept) > LARGEST_ANSWER:
        raise DecisionInvalid(detail=f"an answer has at most {LARGEST_ANSWER} bytes", pointer="/answer")
    schema = request.answer_schema or {}
    validator = validator_of(schema)
    if short := short_verdict(validator, ApplicationCounter(schema), word.answer):
        raise DecisionInvalid(detail=short, pointer="/answer")
    fault = next(validator.iter_errors(word.answer), None)
    if fault is not None:
        where = "/".join(["", "answer", *map(str, fault.instance_path)])
        raise DecisionInvalid(detail=fault.message[:300], pointer=where)
    return sealed_answer(request, word.answer, kept)


def _record_decision(
    request: Request, standing: PrincipalAuthority, word: DecisionInput, agreed: EditJudgement, at: datetime
) -> Decision:
    """Store the decision, linked to the previous one.

    Raises: AlreadyDecided for a second decision by the same person.
    """
    before = Decision.objects.filter(request_id=request.id).order_by("-at", "-id").first()
    row: dict[str, Any] = {
        "id": fresh_id(), "tenant_id": request.tenant_id, "request_id": request.id,
        "principal": standing.principal, "owner": standing.owner,
        "role": ",".join(role.value for role in standing.roles), "kind": word.kind.value,
        "reason": _validate_reason(word), "arguments": agreed.body, "answer": _encode_answer(request, word),
        "quorum": max(agreed.quorum, 1) if word.kind in AGREEING else None,
        "packet_digest": request.packet_digest,
        "previous": before.digest if before is not None else request.packet_digest, "at": at,
    }  # fmt: skip
    try:
        with transaction.atomic():
            return Decision.objects.create(**row, digest=decision_digest(row))
    except IntegrityError as error:
        if not isinstance(error.__cause__, psycopg.errors.UniqueViolation):
            raise
        raise AlreadyDecided(status="decided by you") from None


def _validate_reason(word: DecisionInput) -> str:
    try:
        canonical_outside(word.reason)
    except NotCanonical:
        raise DecisionInvalid(detail="the reason is no text", pointer="/reason") from None
    if len(word.reason) > LONGEST_REASON or "\0" in word.reason:
        detail = f"a reason has at most {LONGEST_REASON} characters, none of them NUL"
        raise DecisionInvalid(detail=detail, pointer="/reason")
    return word.reason


def _to_optional_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _settle_request(
    request: Request, cause: Cause, at: datetime, *, decision: Decision | None = None, granted: str = ""
) -> None:
    """Move the request out of pending, once, and send the signal in the same transaction.
    Raises: AlreadyDecided if the request is no longer pending.
    """
    outcome = decision.kind if decision is not None else ""
    changed = Request.objects.filter(id=request.id, status=PENDING).update(
        status=MOVES[cause].target.value, settled_at=at, outcome=outcome, ended_because=cause.value,
        granted_action=granted if outcome in AGREEING else "",
    )  # fmt: skip
    if not changed:
        raise AlreadyDecided(status=request.status)
    request.refresh_from_db()
    kind, payload = ("expired", {"request": str(request.id)})
    if decision is not None:
        kind, payload = "decided", _build_decision_payload(request, decision)
    settlement = Settlement(
        tenant_id=request.tenant_id, run_id=request.run_id, signal_kind=kind, signal_payload=payload,
        by=decision.principal if decision is not None else None,
    )  # fmt: skip
    request_settled.send(sender=Request, settlement=settlement)
    _publish_request_change(request)


def _publish_request_change(request: Request) -> None:
    """Notify viewers of the request and its run once the caller's transaction has committed."""
    transaction.on_commit(partial(publish_change_hint, request.tenant_id, request.run_id))


def _build_decision_payload(request: Request, decision: Decision) -> dict[str, Any]:
    arguments, answer = _to_optional_bytes(decision.arguments), _to_optional_bytes(decision.answer)
    return {
        "request": str(request.id), "decision": decision.kind, "decision_digest": decision.digest,
        "role": decision.role, "packet_digest": request.packet_digest, "reason": decision.reason,
        "arguments": arguments.decode() if arguments is not None else None,
        "answer": answer.decode() if answer is not None else None,
    }  # fmt: skip


def consume_grant(
    tenant_id: UUID,
    request_id: UUID,
    *,
    effect_id: str,
    action_digest: str,
    at: datetime,
    cursor: "psycopg.Cursor[Any]",
) -> ConsumedGrant | UnusableGrant:
    """Use up a grant, once, for exactly its action; else return why it is void (R-APPR-4).

    Joins the transaction that writes the intent: if the run fails to continue, the grant stays unused
    (R-APPR-14).
    """
    values = {
        "tenant": tenant_id, "request": request_id, "effect": effect_id, "action": action_digest, "at": at
    }  # fmt: skip
    cursor.execute(CONSUME, values, prepare=True)
    if cursor.fetchone() is not None:
        return ConsumedGrant()
    return UnusableGrant(_why_void(request_id, action_digest))


def _why_void(request_id: UUID, action_digest: str) -> str:
    request = Request.objects.filter(id=request_id).first()
    if request is None or request.outcome not in AGREEING:
        return "not_granted"
    if GrantUse.objects.filter(id=request_id).exists():
        return "already_used"
    return "expired" if request.granted_action == action_digest else "another_action"


def withdraw_open(tenant_id: UUID, run_id: UUID, reason: str, at: datetime) -> int:
    """Withdraw the open requests of a run and return how many. Joins the ring's transaction.

    No signal is sent, since the run knows that it ended.
    """
    return Request.objects.filter(tenant_id=tenant_id, run_id=run_id, status=PENDING).update(
        status=MOVES[Cause.RUN_ENDED].target.value, settled_at=at, outcome="", ended_because=reason[:200]
    )


def withdraw_one(tenant_id: UUID, request_id: UUID, reason: str, at: datetime) -> bool:
    """Withdraw one request its run no longer needs, in the ring's transaction; False if settled already."""
    return bool(
        Request.objects.filter(tenant_id=tenant_id, id=request_id, status=PENDING).update(
            status=MOVES[Cause.RUN_ENDED].target.value, settled_at=at, outcome="", ended_because=reason[:200]
        )
    )


def expire_due_of_run(tenant_id: UUID, run_id: UUID, at: datetime) -> int:
    """Expire a run's overdue requests and return how many. Joins the caller's transaction.

    A request locked by a concurrent decision is skipped: that decision detects the expiry itself.
    """
    due = Request.objects.select_for_update(skip_locked=True).filter(
        tenant_id=tenant_id, run_id=run_id, status=PENDING, expires_at__lte=at
    )
    expired = list(due.order_by("created_at", "id"))
    for request in expired:
        _settle_request(request, Cause.TIME_UP, at)
    return len(expired)

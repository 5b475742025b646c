"""The verbs of approvals: the only writers of requests, decisions and grants."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import jsonschema_rs
import psycopg
from django.db import IntegrityError, transaction

from approvals.core.digests import COLUMNS, decision_digest
from approvals.core.errors import AlreadyDecided, DecisionInvalid, Expired, NotYours, PacketChanged, RequestNotFound
from approvals.core.lifecycle import AGREEING, FITTING, DecisionKind, RequestStatus
from approvals.core.policy import Asked, Decider, refusal
from approvals.models import Decision, GrantUse, Request
from approvals.ports import check_edit
from approvals.signals import Settlement, request_settled
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.ids import fresh_id
from tenancy.queries import Standing, standing_of
from traces.core.canonical import canonical_outside

PENDING = RequestStatus.PENDING.value
CONSUME = """
INSERT INTO approvals_grantuse (tenant_id, id, effect_id, action_digest, at)
SELECT tenant_id, id, %(effect)s::text, %(action)s::text, %(at)s::timestamptz FROM approvals_request
 WHERE tenant_id = %(tenant)s AND id = %(request)s AND status = 'decided' AND outcome IN ('approve', 'edit')
   AND granted_action = %(action)s::text AND settled_at + make_interval(secs => grant_seconds) > %(at)s::timestamptz
ON CONFLICT (id) DO NOTHING RETURNING id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request to be opened; its packet is already frozen bytes."""

    id: UUID
    run_id: UUID
    call_id: str
    kind: str
    packet: bytes
    packet_digest: str
    action_digest: str
    tool: str
    queue: str
    quorum: int
    risk: str
    amount: Decimal | None
    has_amount: bool
    submitter: UUID
    submitter_owner: UUID
    grant_seconds: int
    expires_at: datetime
    answer_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What somebody says to a request. `packet_digest` is that of the packet they saw (optional for keys)."""

    kind: DecisionKind
    reason: str = ""
    arguments: Any = None
    answer: Any = None
    packet_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Void:
    """A grant that cannot be used, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Consumed:
    """A grant that was used up by this very call."""


def open_request(tenant_id: UUID, new: NewRequest, at: datetime) -> Request:
    """Ask people. Joins the ring's transaction."""
    return Request.objects.create(
        tenant_id=tenant_id, id=new.id, run_id=new.run_id, call_id=new.call_id, kind=new.kind, packet=new.packet,
        packet_digest=new.packet_digest, action_digest=new.action_digest, tool=new.tool, queue=new.queue,
        quorum=new.quorum, risk=new.risk, amount=new.amount, has_amount=new.has_amount, submitter=new.submitter,
        submitter_owner=new.submitter_owner, grant_seconds=new.grant_seconds, created_at=at,
        expires_at=new.expires_at, answer_schema=dict(new.answer_schema) if new.answer_schema is not None else None,
    )  # fmt: skip


def decide(tenant_id: UUID, request_id: UUID, principal_id: UUID, word: Word) -> Request:
    """Take one person's word. Outermost verb: owns the transaction.

    Standing and limits are read now, from the database (A13). Raises RequestNotFound (404), NotYours (403),
    AlreadyDecided (409), PacketChanged (409), Expired (410), DecisionInvalid (422).
    """
    with tenant(tenant_id):
        at = database_now()
        request = Request.objects.select_for_update().filter(id=request_id).first()
        standing = standing_of(tenant_id, principal_id)
        if request is None or standing is None:
            raise RequestNotFound
        expired = request.status == PENDING and at >= request.expires_at
        if expired:
            _settle(request, RequestStatus.EXPIRED, at)
        else:
            _decide_pending(request, standing, word, at)
    if expired:
        raise Expired(expires_at=request.expires_at.isoformat())
    return request


def _decide_pending(request: Request, standing: Standing, word: Word, at: datetime) -> None:
    if (why := refusal(_asked(request), _decider(standing))) is not None:
        raise NotYours(reason=why)
    if request.status == RequestStatus.EXPIRED:
        raise Expired(expires_at=request.expires_at.isoformat())
    if request.status != PENDING:
        raise AlreadyDecided(status=request.status)
    if word.packet_digest is not None and word.packet_digest != request.packet_digest:
        raise PacketChanged(packet_digest=request.packet_digest)
    if word.kind not in FITTING[request.kind]:
        raise DecisionInvalid(detail=f"{word.kind.value} is no answer to a request for {request.kind}")
    body, quorum, action = _proposal(request, word)
    answer = _answer(request, word)
    decision = _record(request, standing, word, at, arguments=body if word.kind is DecisionKind.EDIT else None, answer=answer)
    if word.kind in AGREEING and not _enough(request, decision, body, quorum):
        return
    _settle(request, RequestStatus.DECIDED, at, decision=decision, granted=action)


def _proposal(request: Request, word: Word) -> tuple[bytes | None, int, str]:
    """The arguments agreed to (None: as shown), how many must agree to them, and the action that would be granted."""
    if word.kind is not DecisionKind.EDIT:
        return None, request.quorum, request.action_digest
    if not isinstance(word.arguments, dict):
        raise DecisionInvalid(detail="an edit gives the arguments as an object", pointer="/arguments")
    judged = check_edit(request.tenant_id, request.run_id, request.call_id, word.arguments)
    if judged.body is None:
        raise DecisionInvalid(detail=judged.refusal, pointer="/arguments")
    return judged.body, judged.quorum, judged.action_digest


def _answer(request: Request, word: Word) -> bytes | None:
    if word.kind is not DecisionKind.ANSWER:
        return None
    errors = list(jsonschema_rs.validator_for(request.answer_schema or {}).iter_errors(word.answer))
    if errors:
        where = "/".join(["", "answer", *map(str, errors[0].instance_path)])
        raise DecisionInvalid(detail=errors[0].message[:300], pointer=where)
    return canonical_outside(word.answer)


def _record(
    request: Request, standing: Standing, word: Word, at: datetime, *, arguments: bytes | None, answer: bytes | None
) -> Decision:
    row: dict[str, Any] = {
        "id": fresh_id(), "tenant_id": request.tenant_id, "request_id": request.id, "principal": standing.principal,
        "owner": standing.owner, "role": ",".join(role.value for role in standing.roles), "kind": word.kind.value,
        "reason": word.reason[:4_000], "arguments": arguments, "answer": answer,
        "packet_digest": request.packet_digest, "at": at,
    }  # fmt: skip
    try:
        with transaction.atomic():
            return Decision.objects.create(**row, digest=decision_digest(row))
    except IntegrityError:
        raise AlreadyDecided(status="decided by you") from None


def _enough(request: Request, decision: Decision, body: bytes | None, quorum: int) -> bool:
    """Whether enough distinct people agreed to the very same arguments, this one included."""
    agreed = [d for d in request.decisions.all() if d.kind in AGREEING and _bytes(d.arguments) == body]
    return len(agreed) >= quorum


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _settle(
    request: Request, status: RequestStatus, at: datetime, *, decision: Decision | None = None, granted: str = ""
) -> None:
    """Leave pending, once, and say so in the same transaction."""
    outcome = decision.kind if decision is not None else ""
    agreed = outcome in AGREEING
    changed = Request.objects.filter(id=request.id, status=PENDING).update(
        status=status.value, settled_at=at, outcome=outcome, granted_action=granted if agreed else ""
    )
    if not changed:
        raise AlreadyDecided(status=request.status)
    request.refresh_from_db()
    if status is RequestStatus.WITHDRAWN:
        return
    kind, payload = ("expired", {"request": str(request.id)})
    if decision is not None:
        kind, payload = "decided", _payload(request, decision)
    settlement = Settlement(
        tenant_id=request.tenant_id, run_id=request.run_id, signal_kind=kind, signal_payload=payload,
        by=decision.principal if decision is not None else None,
    )  # fmt: skip
    request_settled.send(sender=Request, settlement=settlement)


def _payload(request: Request, decision: Decision) -> dict[str, Any]:
    arguments, answer = _bytes(decision.arguments), _bytes(decision.answer)
    return {
        "request": str(request.id), "decision": decision.kind, "decision_digest": decision.digest,
        "role": decision.role, "packet_digest": request.packet_digest, "reason": decision.reason,
        "arguments": arguments.decode() if arguments is not None else None,
        "answer": answer.decode() if answer is not None else None,
    }  # fmt: skip


def _asked(request: Request) -> Asked:
    return Asked(
        kind=request.kind, queue=request.queue, risk=request.risk, amount=request.amount,
        has_amount=request.has_amount, submitter=str(request.submitter), submitter_owner=str(request.submitter_owner),
    )  # fmt: skip


def _decider(standing: Standing) -> Decider:
    return Decider(
        principal=str(standing.principal), owner=str(standing.owner), scopes=tuple(s.value for s in standing.scopes),
        queues=standing.queues, max_amount=standing.max_amount, max_risk=standing.max_risk,
    )  # fmt: skip


def consume(
    tenant_id: UUID,
    request_id: UUID,
    *,
    effect_id: str,
    action_digest: str,
    at: datetime,
    cursor: "psycopg.Cursor[Any]",
) -> Consumed | Void:
    """Use a grant up, once, for exactly its action. Joins the transaction that writes the intent (R-APPR-14)."""
    values = {"tenant": tenant_id, "request": request_id, "effect": effect_id, "action": action_digest, "at": at}
    cursor.execute(CONSUME, values, prepare=True)
    if cursor.fetchone() is not None:
        return Consumed()
    return Void(_why_void(request_id, action_digest))


def _why_void(request_id: UUID, action_digest: str) -> str:
    request = Request.objects.filter(id=request_id).first()
    if request is None or request.outcome not in AGREEING:
        return "not_granted"
    if GrantUse.objects.filter(id=request_id).exists():
        return "already_used"
    return "expired" if request.granted_action == action_digest else "another_action"


def withdraw_open(tenant_id: UUID, run_id: UUID, reason: str, at: datetime) -> int:
    """Withdraw what a run still asks; how many there were. Joins the ring's transaction."""
    return Request.objects.filter(run_id=run_id, status=PENDING).update(
        status=RequestStatus.WITHDRAWN.value, settled_at=at, outcome=""
    )


def expire_due_of_run(tenant_id: UUID, run_id: UUID, at: datetime) -> int:
    """Expire a run's requests that are past their time; how many. Joins the caller's transaction."""
    due = Request.objects.select_for_update(skip_locked=True).filter(
        run_id=run_id, status=PENDING, expires_at__lte=at
    )
    expired = 0
    for request in due:
        _settle(request, RequestStatus.EXPIRED, at)
        expired += 1
    return expired


def columns_of(decision: Decision) -> dict[str, Any]:
    """A stored decision as the row its digest covers."""
    return {name: getattr(decision, name) for name in COLUMNS}

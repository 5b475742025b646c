"""Approvals: list, get, decide (R-API-2)."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from approvals.actions import DecisionInput, decide_request
from approvals.core.allowed_decisions import list_allowed_decisions
from approvals.core.argument_diff import diff_json_values
from approvals.core.errors import RequestNotFound
from approvals.core.lifecycle import DecisionKind, RequestStatus
from approvals.core.packet import read_packet
from approvals.core.policy import Rule, explain_decision_refusal
from approvals.core.quorum import agreement_refusal
from approvals.models import Decision, Deferral, Request
from approvals.queries import decisions_of, list_approval_requests
from approvals.queries.countable_votes import counting_votes
from approvals.queries.edits import AgreedEdit, quorum_under_way, standing_edits
from approvals.queries.people import asked_of, decider_of
from approvals.queries.undo import Deferred, deferred_of
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.queries import standing_of
from tenancy.rest.api_helpers import get_caller, paginate_rows, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    FormattedCharField,
    Id,
    PageQuery,
    StrictCharField,
    StrictSerializer,
    page_of,
    validate_input,
)

STATUSES = [status.value for status in RequestStatus]
KINDS = [kind.value for kind in DecisionKind]


class ApprovalRow(serializers.Serializer[Any]):
    """A request in a list. `quorum` is how many people must agree: to what was asked (its packet says how
    many, too), or while an edit waits for more people to that edit."""

    id = serializers.UUIDField()
    run = serializers.UUIDField()
    kind = serializers.CharField()
    status = serializers.ChoiceField(choices=STATUSES)
    queue = serializers.CharField()
    quorum = serializers.IntegerField()
    risk = serializers.CharField()
    tool = serializers.CharField(allow_blank=True)
    amount = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    outcome = serializers.CharField(allow_blank=True)
    ended_because = serializers.CharField(allow_blank=True)


class ActionField(serializers.Serializer[Any]):
    """What would be done, and where each argument came from."""

    tool = serializers.CharField()
    arguments = serializers.JSONField()
    argument_provenance = serializers.DictField(child=serializers.CharField())


class ChangeField(serializers.Serializer[Any]):
    """One difference between what was proposed and an edit."""

    pointer = serializers.CharField(allow_blank=True)
    what = serializers.ChoiceField(choices=["added", "removed", "changed"])
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class DecisionField(serializers.Serializer[Any]):
    """A word that was said. An edit shows its arguments: whoever agrees to it says the same edit."""

    decision = serializers.CharField()
    by = serializers.UUIDField()
    role = serializers.CharField()
    at = serializers.DateTimeField()
    reason = serializers.CharField(allow_blank=True)
    arguments = serializers.DictField(child=serializers.JSONField(allow_null=True), allow_null=True)
    changes = ChangeField(many=True)


class DeferredField(serializers.Serializer[Any]):
    """A yes that takes effect at `effective_at` unless it is taken back before; undoing may name its `id`."""

    id = serializers.UUIDField()
    decision = serializers.CharField()
    by = serializers.UUIDField()
    effective_at = serializers.DateTimeField()


class RefusalField(serializers.Serializer[Any]):
    """Why the caller may not decide a request, or, for `related_agreed`, may only refuse it."""

    rule = serializers.ChoiceField(choices=[rule.value for rule in Rule])
    detail = serializers.CharField()


class StandingEditField(serializers.Serializer[Any]):
    """Other arguments that somebody agreed to: `quorum` people must agree to these very ones, `agreed` have,
    and `missing` more must. Whoever agrees says `edit` with the same `arguments`."""

    arguments = serializers.DictField(child=serializers.JSONField(allow_null=True))
    by = serializers.UUIDField()
    at = serializers.DateTimeField()
    quorum = serializers.IntegerField()
    agreed = serializers.IntegerField()
    missing = serializers.IntegerField()


class ApprovalField(ApprovalRow):
    """A request with its packet. `offers` is what the caller can say to it; nothing while a yes waits to
    take effect, nor once they have said their word, it is settled or its time is up. `edits` are those that
    wait for more people. `refusal` is why the caller may not say it."""

    packet_digest = serializers.CharField()
    packet = serializers.DictField(child=serializers.JSONField())
    action = ActionField(allow_null=True)
    answer_schema = serializers.DictField(child=serializers.JSONField(), allow_null=True)
    offers = serializers.ListField(child=serializers.ChoiceField(choices=KINDS))
    edits = StandingEditField(many=True)
    decisions = DecisionField(many=True)
    deferred = DeferredField(allow_null=True)
    refusal = RefusalField(allow_null=True)


class DecisionBody(StrictSerializer):
    """What somebody says to a request. `revise` sends a call back to the agent, which is told the `reason`
    (then needed, at most 2,000 characters), answers and proposes anew; no right comes of it."""

    decision = serializers.ChoiceField(choices=KINDS)
    reason = StrictCharField(max_length=4_000, required=False, allow_blank=True)
    arguments = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    amounts = serializers.DictField(child=StrictCharField(max_length=40), required=False)
    answer = serializers.JSONField(required=False, allow_null=True)
    packet_digest = FormattedCharField(r"^[0-9a-f]{64}$", required=False)


class ApprovalFilters(PageQuery):
    """Which requests."""

    status = serializers.ChoiceField(choices=STATUSES, required=False)
    run = Id(required=False)
    queue = StrictCharField(max_length=64, required=False)


class Approvals(APIView):
    """The requests of the caller's tenant, oldest first."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(
        operation_id="list_approvals",
        parameters=[ApprovalFilters],
        responses=page_of(ApprovalRow, "ApprovalPage"),
    )
    def get(self, request: HttpRequest) -> Response:
        """A page of requests: what runs ask people. `status=pending` lists those that wait for a decision."""
        query = validate_input(ApprovalFilters, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            found = list_approval_requests(
                status=query.get("status"), run_id=query.get("run"), queue=query.get("queue")
            )
            found = found.prefetch_related("decisions")
            return paginate_rows(request, found, encode_request_row, newest_first=False)


class OneApproval(APIView):
    """One request."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="get_approval", responses=ApprovalField)
    def get(self, request: HttpRequest, request_id: str) -> Response:
        """The request with the packet as it was frozen: the exact action, where each argument came from, what
        it costs, and what the caller may decide (`offers`) or why not (`refusal`)."""
        wanted = uuid_or_none(request_id)
        with tenant_transaction(get_caller(request).tenant):
            found = Request.objects.filter(id=wanted).first() if wanted is not None else None
            if found is None:
                raise RequestNotFound
            return Response(encode_request_detail(found, get_caller(request).principal))


class Decisions(APIView):
    """The words that are said to a request.

    Who may is judged per request: a question is its submitter's to answer.
    """

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(
        operation_id="decide_approval",
        request=DecisionBody,
        responses={200: ApprovalField, 202: ApprovalField},
    )
    def post(self, request: HttpRequest, request_id: str) -> Response:
        """Decide: 200 with the request; 202 where the yes can be taken back for some seconds (`deferred`);
        403 not yours, 409 decided before, 410 too late, 422 a word that does not fit.
        """
        found = uuid_or_none(request_id)
        if found is None:
            raise RequestNotFound
        said = validate_input(DecisionBody, request.data)
        return post_once(request, lambda: self._decide_request(request, found, said))

    def _decide_request(self, request: HttpRequest, found: UUID, said: dict[str, Any]) -> StoredResponse:
        who = get_caller(request)
        names = ("reason", "arguments", "amounts", "answer", "packet_digest")
        given = {name: said[name] for name in names if name in said}
        word = DecisionInput(kind=DecisionKind(said["decision"]), **given)
        decided = decide_request(who.tenant, found, who.principal, word)
        with tenant_transaction(who.tenant):
            return StoredResponse(
                200 if decided.kept is None else 202, encode_request_detail(decided, who.principal)
            )


def encode_request_row(found: Request) -> dict[str, Any]:
    """Encode a request for a list."""
    edits = standing_edits(found, sorted(found.decisions.all(), key=lambda said: (said.at, said.id)))
    return _encode_row_fields(found, edits)


def _encode_row_fields(found: Request, edits: Sequence[AgreedEdit]) -> dict[str, Any]:
    return {
        "id": str(found.id), "run": str(found.run_id), "kind": found.kind, "status": found.status,
        "queue": found.queue, "quorum": quorum_under_way(found, edits), "risk": found.risk,
        "tool": found.tool,
        "amount": None if found.amount is None else str(found.amount),
        "created_at": found.created_at.isoformat(), "expires_at": found.expires_at.isoformat(),
        "outcome": found.outcome, "ended_because": found.ended_because,
    }  # fmt: skip


def encode_request_detail(found: Request, principal: UUID) -> dict[str, Any]:
    """Encode a request with its packet and decisions, for one caller."""
    packet = orjson.loads(bytes(found.packet))
    action = None
    arguments = orjson.loads(packet["arguments"]) if packet["arguments"] else None
    if packet["tool"] is not None:
        origins = {part["pointer"]: part["origin"] for part in packet["provenance"]}
        action = {"tool": packet["tool"]["name"], "arguments": arguments, "argument_provenance": origins}
    deferred = _encode_current_deferral(found)
    decisions = decisions_of(found.id)
    edits = standing_edits(found, decisions)
    return {
        **_encode_row_fields(found, edits),
        "packet_digest": found.packet_digest,
        "packet": packet,
        "action": action,
        "answer_schema": found.answer_schema,
        "offers": [] if _has_spoken(found, decisions, principal) else _list_open_decisions(found, deferred),
        "edits": [_encode_edit(one) for one in edits],
        "decisions": [_encode_decision(decision, arguments) for decision in decisions],
        "deferred": deferred,
        "refusal": _encode_refusal(found, decisions, principal),
    }


def _encode_refusal(found: Request, decisions: Sequence[Decision], principal: UUID) -> dict[str, str] | None:
    """Encode why the caller may not decide a pending request; None if the caller may."""
    who = standing_of(found.tenant_id, principal)
    if found.status != RequestStatus.PENDING or who is None:
        return None
    decider = decider_of(who)
    why = explain_decision_refusal(asked_of(found), decider) or agreement_refusal(
        counting_votes(found, decisions), None, decider
    )
    return None if why is None else {"rule": why.rule.value, "detail": why.sentence}


def _has_spoken(found: Request, decisions: Sequence[Decision], principal: UUID) -> bool:
    """Return whether the person behind the caller has decided already."""
    who = standing_of(found.tenant_id, principal)
    return who is not None and any(said.owner == who.owner for said in decisions)


def _encode_edit(one: AgreedEdit) -> dict[str, Any]:
    return {
        "arguments": one.arguments, "by": str(one.first.principal), "at": one.first.at.isoformat(),
        "quorum": one.quorum, "agreed": one.agreed, "missing": one.remaining_approvals,
    }  # fmt: skip


def _list_open_decisions(found: Request, deferred: dict[str, Any] | None) -> list[str]:
    """List the decisions still possible: none while an approval is deferred or after the expiry."""
    if found.status != RequestStatus.PENDING or deferred is not None or database_now() >= found.expires_at:
        return []
    return [kind.value for kind in list_allowed_decisions(read_packet(bytes(found.packet)))]


def _encode_current_deferral(found: Request) -> dict[str, Any] | None:
    """Encode the pending deferral: the one just created, or else the one in the database."""
    if found.status != RequestStatus.PENDING:
        return None
    if found.kept is not None:
        return encode_deferred_approval(found.kept)
    kept = deferred_of([found.id]).get(found.id)
    return encode_deferred_approval(kept) if kept is not None and kept.stands else None


def encode_deferred_approval(kept: Deferral | Deferred) -> dict[str, Any]:
    """Encode an approval that can be undone."""
    return {
        "id": str(kept.id), "decision": kept.kind, "by": str(kept.principal),
        "effective_at": kept.effective_at.isoformat(),
    }  # fmt: skip


def _encode_decision(said: Decision, proposed: Any) -> dict[str, Any]:
    edited = None if said.arguments is None else orjson.loads(bytes(said.arguments))
    return {
        "decision": said.kind,
        "by": str(said.principal),
        "role": said.role,
        "at": said.at.isoformat(),
        "reason": said.reason,
        "arguments": edited,
        "changes": []
        if said.kind != "edit"
        else [change._asdict() for change in diff_json_values(proposed, edited)],
    }

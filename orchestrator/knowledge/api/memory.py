"""The API of memory: what is kept, what waits, and a person's decision on it (R-MEM-2)."""

from typing import Any, ClassVar, Literal

from django.db.models import F
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.knowledge.actions.memory import judge_memory
from orchestrator.knowledge.queries.memory import JudgedProposal, build_memory_entry, list_memory_proposals
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, paginate_rows, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    PageQuery,
    StrictCharField,
    StrictSerializer,
    page_of,
    validate_input,
)

VERDICTS = ("waiting", "kept", "refused", "quarantined")


class MemoryFilters(PageQuery):
    """Only those with this verdict."""

    verdict = serializers.ChoiceField(choices=VERDICTS, required=False)


class EvidenceRow(serializers.Serializer[Any]):
    """A fact of the run that a proposal rests on."""

    fact = serializers.CharField()
    version = serializers.IntegerField()
    digest = serializers.CharField()
    trust = serializers.ChoiceField(choices=["trusted", "untrusted"])


class MemoryRow(serializers.Serializer[Any]):
    """What a run proposed to remember, and what was said of it last."""

    id = serializers.UUIDField()
    run = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=["episodic", "semantic", "procedural"])
    text = serializers.CharField()
    trust = serializers.ChoiceField(choices=["trusted", "untrusted"])
    evidence = EvidenceRow(many=True)
    verdict = serializers.ChoiceField(choices=VERDICTS)
    reason = serializers.CharField(allow_blank=True)
    proposed_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()


class MemoryWordBody(StrictSerializer):
    """Why: it stands in the audit log."""

    reason = StrictCharField(max_length=500)


class Memory(APIView):
    """What was proposed to be remembered, newest first."""

    permission_classes = [make_scope_permission(Scope.READ)]

    @extend_schema(
        operation_id="list_memory", parameters=[MemoryFilters], responses=page_of(MemoryRow, "MemoryPage")
    )
    def get(self, request: Request) -> Response:
        """A page of them."""
        filters = validate_input(MemoryFilters, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            found = list_memory_proposals(filters.get("verdict", "")).annotate(created_at=F("at"))
            return paginate_rows(request, found, lambda row: _serialize_memory(build_memory_entry(row)))


class MemoryVerdictView(APIView):
    """One verdict on one proposal."""

    permission_classes = [make_scope_permission(Scope.ADMIN)]
    verdict: ClassVar[Literal["kept", "refused", "quarantined"]]

    def post(self, request: Request, memory_id: str) -> Response:
        """Say it. Raises NotFound, MemoryRefused."""
        reason = validate_input(MemoryWordBody, request.data)["reason"]
        return post_once(request, lambda: self._judge_proposal(request, memory_id, reason))

    def _judge_proposal(self, request: Request, memory_id: str, reason: str) -> StoredResponse:
        who = get_caller(request)
        found = judge_memory(
            who.tenant, uuid_or_none(memory_id), self.verdict, by=who.principal, reason=reason
        )
        return StoredResponse(200, MemoryRow(_serialize_memory(found)).data)


@extend_schema_view(
    post=extend_schema(operation_id="keep_memory", request=MemoryWordBody, responses=MemoryRow)
)
class Keep(MemoryVerdictView):
    """Let later runs find it; the gate is asked."""

    verdict = "kept"


@extend_schema_view(
    post=extend_schema(operation_id="refuse_memory", request=MemoryWordBody, responses=MemoryRow)
)
class Refuse(MemoryVerdictView):
    """Never."""

    verdict = "refused"


@extend_schema_view(
    post=extend_schema(operation_id="quarantine_memory", request=MemoryWordBody, responses=MemoryRow)
)
class Quarantine(MemoryVerdictView):
    """Hide what was kept from later runs."""

    verdict = "quarantined"


def _serialize_memory(found: JudgedProposal) -> dict[str, Any]:
    row = found.row
    return {
        "id": row.id, "run": row.run_id, "kind": row.kind, "text": row.text, "trust": found.trust,
        "evidence": [one.model_dump() for one in found.evidence], "verdict": found.verdict,
        "reason": found.reason, "proposed_at": row.at, "decided_at": found.decided_at,
        "expires_at": row.expires_at,
    }  # fmt: skip

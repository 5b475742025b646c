"""Circuits for programs: what is left alone, since when and why, and closing one by hand (R-BUDGET-13)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import format_timestamp
from orchestrator.outbound.actions import reset_circuit
from orchestrator.outbound.queries import CircuitSeen, circuit_now, circuits_now
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import StrictCharField, StrictSerializer, page_of, validate_input

STATES = ["closed", "open", "half_open"]


class CircuitRowField(serializers.Serializer[Any]):
    """A circuit in front of a tool, a model provider, or the tenant's own use of one. `shared`: a provider's,
    which holds for every tenant. `next_probe`: when a call may try."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=["tool", "model", "use"])
    subject = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    failures = serializers.IntegerField()
    since = serializers.DateTimeField()
    next_probe = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    failed_at = serializers.DateTimeField()
    shared = serializers.BooleanField()


class ResetBody(StrictSerializer):
    """Why it may be called again."""

    reason = StrictCharField(max_length=500)


class Circuits(APIView):
    """The circuits."""

    permission_classes = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="list_circuits", responses=page_of(CircuitRowField, "CircuitPage"))
    def get(self, request: Request) -> Response:
        """All that ever failed, those in trouble first, in one page. What is not among them is closed."""
        with tenant_transaction(get_caller(request).tenant):
            found = circuits_now(database_now())
        return Response(
            {"results": [_serialize_circuit(one) for one in found], "next": None, "previous": None}
        )


class Reset(APIView):
    """Closing a circuit by hand."""

    permission_classes = [make_scope_permission(Scope.ADMIN)]

    @extend_schema(operation_id="reset_circuit", request=ResetBody, responses={200: CircuitRowField})
    def post(self, request: Request, circuit_id: str) -> Response:
        """The circuit, closed; a shared one is tried by one call at once, whose good answer closes it:
        once in a cooldown, before `next_probe` nothing more is tried. The reason stands in the audit log.
        Raises NotFound."""
        who, wanted = get_caller(request), uuid_or_none(circuit_id)
        if wanted is None:
            raise NotFound
        reason = validate_input(ResetBody, request.data)["reason"]

        def build_response() -> StoredResponse:
            reset_circuit(who.tenant, wanted, by=who.principal, reason=reason)
            with tenant_transaction(who.tenant):
                return StoredResponse(200, _serialize_circuit(circuit_now(wanted, database_now())))

        return post_once(request, build_response)


def _serialize_circuit(one: CircuitSeen) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "kind": one.kind,
        "subject": one.subject,
        "state": one.state,
        "failures": one.failures,
        "since": format_timestamp(one.since),
        "next_probe": format_timestamp(one.next_probe),
        "reason": one.reason,
        "failed_at": format_timestamp(one.failed_at),
        "shared": one.shared,
    }

"""Circuits for programs: what is left alone, since when and why, and closing one by hand (R-BUDGET-13)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.actions.circuit_breakers import reset_circuit
from orchestrator.api.serializers import stamp
from orchestrator.queries.circuits import CircuitSeen, circuit_now, circuits_now
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant
from tenancy.rest.api_helpers import caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import Answer
from tenancy.rest.permissions import requires
from tenancy.rest.serializer_fields import Exact, Text, asked, page_of

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


class ResetBody(Exact):
    """Why it may be called again."""

    reason = Text(max_length=500)


class Circuits(APIView):
    """The circuits."""

    permission_classes = [requires(Scope.READ)]

    @extend_schema(operation_id="list_circuits", responses=page_of(CircuitRowField, "CircuitPage"))
    def get(self, request: Request) -> Response:
        """All that ever failed, those in trouble first, in one page. What is not among them is closed."""
        with tenant(caller(request).tenant):
            found = circuits_now(database_now())
        return Response({"results": [_row(one) for one in found], "next": None, "previous": None})


class Reset(APIView):
    """Closing a circuit by hand."""

    permission_classes = [requires(Scope.ADMIN)]

    @extend_schema(operation_id="reset_circuit", request=ResetBody, responses={200: CircuitRowField})
    def post(self, request: Request, circuit_id: str) -> Response:
        """The circuit, closed; a shared one is tried by one call at once, whose good answer closes it:
        once in a cooldown, before `next_probe` nothing more is tried. The reason stands in the audit log.
        Raises NotFound."""
        who, wanted = caller(request), uuid_or_none(circuit_id)
        if wanted is None:
            raise NotFound
        reason = asked(ResetBody, request.data)["reason"]

        def closed() -> Answer:
            reset_circuit(who.tenant, wanted, by=who.principal, reason=reason)
            with tenant(who.tenant):
                return Answer(200, _row(circuit_now(wanted, database_now())))

        return post_once(request, closed)


def _row(one: CircuitSeen) -> dict[str, Any]:
    return {
        "id": str(one.id), "kind": one.kind, "subject": one.subject, "state": one.state,
        "failures": one.failures, "since": stamp(one.since), "next_probe": stamp(one.next_probe),
        "reason": one.reason, "failed_at": stamp(one.failed_at), "shared": one.shared,
    }  # fmt: skip

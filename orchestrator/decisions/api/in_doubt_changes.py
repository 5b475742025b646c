"""Changes in doubt of an ended run: which there are, what people say of them, and looking them up
(R-TOOL-9)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api import presenters
from orchestrator.api.serializers import RunRow
from orchestrator.core.admission.errors import RunNotFound
from orchestrator.decisions.actions.late_reconciliation import ask_look_up, reconcile_late_effect
from orchestrator.decisions.api.in_doubt_serializers import DoubtList, LookUpBody, ReconcileBody
from orchestrator.decisions.queries.in_doubt_changes import ShownDoubt, shown_doubts
from orchestrator.runs.queries.runs import run_of
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import validate_input


class Effects(APIView):
    """The changes in doubt of an ended run."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="list_effects_in_doubt", responses=DoubtList)
    def get(self, request: Request, run_id: str) -> Response:
        """All changes of which nobody knows whether they happened; none while the run is under way."""
        with tenant_transaction(get_caller(request).tenant):
            found = shown_doubts(run_of(uuid_or_none(run_id)))
        return Response({"results": [_serialize_in_doubt_change(one) for one in found]})


class _InDoubtView(APIView):
    """A door at which those who may decide say something of one change."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.DECIDE)]


class Reconcile(_InDoubtView):
    """Say whether a change in doubt happened."""

    @extend_schema(operation_id="reconcile_effect", request=ReconcileBody, responses={202: RunRow})
    def post(self, request: Request, run_id: str) -> Response:
        """Take the word: 202 with the run, whose next record has it. Its end stays as it is."""
        run, body = _parse_run_id(run_id), validate_input(ReconcileBody, request.data)
        return post_once(request, lambda: self._reconcile_effect(request, run, body))

    def _reconcile_effect(self, request: Request, run: UUID, body: dict[str, Any]) -> StoredResponse:
        who, given = get_caller(request), {"verdict": body["verdict"], "reason": body["reason"]}
        return StoredResponse(
            202,
            presenters.serialize_run_row(
                reconcile_late_effect(who.tenant, run, body["effect"], by=who.principal, **given)
            ),
        )


class LookUp(_InDoubtView):
    """Have a change in doubt looked up."""

    @extend_schema(operation_id="look_up_effect", request=LookUpBody, responses={202: RunRow})
    def post(self, request: Request, run_id: str) -> Response:
        """Ask for the look-up: 202 with the run, whose next record has what it brought."""
        run, effect = _parse_run_id(run_id), validate_input(LookUpBody, request.data)["effect"]
        return post_once(request, lambda: self._request_look_up(request, run, effect))

    def _request_look_up(self, request: Request, run: UUID, effect: str) -> StoredResponse:
        who = get_caller(request)
        return StoredResponse(
            202, presenters.serialize_run_row(ask_look_up(who.tenant, run, effect, by=who.principal))
        )


def _parse_run_id(run_id: str) -> UUID:
    found = uuid_or_none(run_id)
    if found is None:
        raise RunNotFound
    return found


def _serialize_in_doubt_change(one: ShownDoubt) -> dict[str, Any]:
    change = one.doubt.change
    return {
        "effect": change.effect,
        "call": change.call,
        "tool": change.tool,
        "why": one.doubt.why,
        "blocks_retry": one.doubt.blocks,
        "can_look_up": one.can_look_up,
        "being_recorded": one.being_recorded,
        "request": None if one.request is None else str(one.request),
        "arguments": one.arguments if isinstance(one.arguments, dict) else None,
    }

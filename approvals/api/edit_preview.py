"""Preview of an edit: the quorum that it would need, before anyone decides (R-APPR-5)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from approvals.core.errors import AlreadyDecided, DecisionInvalid, RequestNotFound
from approvals.core.lifecycle import FITTING, DecisionKind, RequestStatus
from approvals.core.quorum import count_agreeing_people
from approvals.models import Request
from approvals.queries import decisions_of
from approvals.queries.countable_votes import counting_votes
from approvals.queries.edits import judge_edit
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import StrictSerializer, validate_input


class EditPreviewBody(StrictSerializer):
    """The arguments as they would be edited."""

    arguments = serializers.DictField(child=serializers.JSONField(allow_null=True))


class EditPreviewField(serializers.Serializer[Any]):
    """What an edit would need: `quorum` people must agree to these very arguments, `agreed`
    have, and `missing` more must. `risk` is that of the edited call, `amount` what it moves."""

    quorum = serializers.IntegerField()
    agreed = serializers.IntegerField()
    missing = serializers.IntegerField()
    risk = serializers.CharField()
    amount = serializers.CharField(allow_null=True)


class EditPreview(APIView):
    """An edit that nobody has decided."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="preview_edit", request=EditPreviewBody, responses=EditPreviewField)
    def post(self, request: HttpRequest, request_id: str) -> Response:
        """Judge the arguments as a decision would and say how many people must agree; nothing is decided: 409
        settled, 422 an edit that would be refused.
        """
        found = uuid_or_none(request_id)
        if found is None:
            raise RequestNotFound
        said = validate_input(EditPreviewBody, request.data)
        tenant_id = get_caller(request).tenant
        return post_once(
            request, lambda: StoredResponse(200, _build_edit_preview(tenant_id, found, said["arguments"]))
        )


def _build_edit_preview(tenant_id: UUID, request_id: UUID, arguments: dict[str, Any]) -> dict[str, Any]:
    with tenant_transaction(tenant_id):
        found = Request.objects.filter(id=request_id).first()
        if found is None:
            raise RequestNotFound
        if found.status != RequestStatus.PENDING:
            raise AlreadyDecided(status=found.status)
        if DecisionKind.EDIT not in FITTING[found.kind]:
            raise DecisionInvalid(detail=f"edit is no answer to a request for {found.kind}")
        judged = judge_edit(found, arguments)
        have = count_agreeing_people(counting_votes(found, decisions_of(found.id)), judged.body)
    quorum = max(judged.quorum, 1)
    return {
        "quorum": quorum, "agreed": have, "missing": max(0, quorum - have), "risk": judged.risk or found.risk,
        "amount": None if judged.amount is None else str(judged.amount),
    }  # fmt: skip

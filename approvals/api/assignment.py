"""API of actions on a request other than deciding it: claim, assign, release, snooze, wake, comment.

Spec: R-APPR-9.
"""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from approvals.actions.assignment import LONGEST_COMMENT, AssignmentChange, update_assignment
from approvals.core.assignment import WISHES, AssignmentAction
from approvals.core.errors import RequestNotFound
from approvals.models import Request
from approvals.queries.assignment import comments_of, handled_of, holders_of
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import Id, Moment, StrictCharField, StrictSerializer, validate_input


class HandlingBody(StrictSerializer):
    """What somebody does with a request."""

    do = serializers.ChoiceField(choices=[kind.value for kind in WISHES])
    to = Id(required=False)
    until = Moment(required=False)
    text = StrictCharField(max_length=LONGEST_COMMENT, required=False, allow_blank=True)


class HolderField(serializers.Serializer[Any]):
    """Whose it is."""

    principal = serializers.UUIDField()
    name = serializers.CharField()


class CommentField(serializers.Serializer[Any]):
    """A remark."""

    name = serializers.CharField()
    at = serializers.DateTimeField()
    text = serializers.CharField()


class HandlingField(serializers.Serializer[Any]):
    """Whose a request is, and what was remarked on it."""

    request = serializers.UUIDField()
    held_by = HolderField(allow_null=True)
    comments = CommentField(many=True)


class RequestAssignment(APIView):
    """What is done with a request besides deciding it. Who may is judged per request."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="get_approval_handling", responses=HandlingField)
    def get(self, request: HttpRequest, request_id: str) -> Response:
        """Whose it is, and the remarks."""
        wanted = uuid_or_none(request_id)
        with tenant_transaction(get_caller(request).tenant):
            if wanted is None or not Request.objects.filter(id=wanted).exists():
                raise RequestNotFound
            return Response(_encode_assignment(wanted))

    @extend_schema(operation_id="handle_approval", request=HandlingBody, responses=HandlingField)
    def post(self, request: HttpRequest, request_id: str) -> Response:
        """Do it: 200; 403 not yours, 409 settled or claimed by another, 422 what does not fit."""
        found = uuid_or_none(request_id)
        if found is None:
            raise RequestNotFound
        said = validate_input(HandlingBody, request.data)
        return post_once(request, lambda: self._update_assignment(request, found, said))

    def _update_assignment(self, request: HttpRequest, found: UUID, said: dict[str, Any]) -> StoredResponse:
        who = get_caller(request)
        wish = AssignmentChange(
            kind=AssignmentAction(said["do"]),
            to=said.get("to"),
            until=said.get("until"),
            text=said.get("text", ""),
        )
        update_assignment(who.tenant, found, who.principal, wish)
        with tenant_transaction(who.tenant):
            return StoredResponse(200, _encode_assignment(found))


def _encode_assignment(request: UUID) -> dict[str, Any]:
    held = holders_of(handled_of([request])).get(request)
    return {
        "request": str(request),
        "held_by": {"principal": str(held[0]), "name": held[1]} if held is not None else None,
        "comments": [
            {"name": one.name, "at": one.at.isoformat(), "text": one.text} for one in comments_of(request)
        ],
    }

"""Revealing a sealed value of a request to whoever decides on it (R-SEC-4)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from approvals.actions.reveal import reveal_sealed_value
from approvals.core.errors import RequestNotFound
from tenancy.core.roles import Scope
from tenancy.rest.api_helpers import get_caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import StrictCharField, StrictSerializer, validate_input


class RevealBody(StrictSerializer):
    """Which value: a pointer into the arguments, such as `/password`."""

    pointer = StrictCharField(max_length=1_000)


class RevealedField(serializers.Serializer[Any]):
    """The value, this once; null where the same was answered before under its Idempotency-Key."""

    pointer = serializers.CharField()
    value = serializers.CharField(allow_blank=True, allow_null=True)


class RevealedValue(APIView):
    """A sealed value of a request. Who may is judged per request."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.REVEAL)]

    @extend_schema(operation_id="reveal_approval", request=RevealBody, responses=RevealedField)
    def post(self, request: HttpRequest, request_id: str) -> Response:
        """Show the value and record that it was shown: 200; 403 not yours, 409 settled, 410 erased, 422
        nothing is sealed there. The same again under its Idempotency-Key has no value: none is kept.
        """
        found = uuid_or_none(request_id)
        if found is None:
            raise RequestNotFound
        pointer: str = validate_input(RevealBody, request.data)["pointer"]
        who, clear = get_caller(request), []

        def build_response() -> StoredResponse:
            clear.append(reveal_sealed_value(who.tenant, found, who.principal, pointer))
            return StoredResponse(200, {"pointer": pointer, "value": None})

        response = post_once(request, build_response)
        if clear:
            response.data = {"pointer": pointer, "value": clear[0]}
        response["Cache-Control"] = "no-store"
        return response

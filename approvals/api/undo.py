"""API of undoing an approval, and of the undo window (docs/console.md)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from approvals.actions.undo import undo_deferred_approval
from approvals.actions.undo_settings import LONGEST_REASON, set_undo_window
from approvals.api.requests import ApprovalField, encode_request_detail
from approvals.core.errors import RequestNotFound
from approvals.core.undo import LONGEST
from approvals.queries.undo import WindowNow, window_now
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import expected_version, get_caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    Id,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    validate_input,
)


class UndoBody(StrictSerializer):
    """Which yes is meant, by the `id` in `deferred`; without it the one that stands."""

    deferred = Id(required=False)


class UndoWindowBody(StrictSerializer):
    """For how many seconds a yes can be taken back, 0 for not at all, and why."""

    seconds = StrictIntegerField(min_value=0, max_value=LONGEST)
    reason = StrictCharField(max_length=LONGEST_REASON)


class UndoWindowField(serializers.Serializer[Any]):
    """What holds for the next yes; version 0 is what ships."""

    seconds = serializers.IntegerField()
    version = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)


class UndoWindows(APIView):
    """How long a yes can be taken back in this tenant."""

    reading, writing = make_scope_permission(Scope.READ), make_scope_permission(Scope.ADMIN)

    def get_permissions(self) -> list[BasePermission]:
        """Require READ for safe methods and ADMIN for changes."""
        return [self.reading() if self.request.method in {"GET", "HEAD", "OPTIONS"} else self.writing()]

    @extend_schema(operation_id="get_undo_window", responses=UndoWindowField)
    def get(self, request: HttpRequest) -> Response:
        """What holds, with its version as the ETag."""
        with tenant_transaction(get_caller(request).tenant):
            return _build_undo_window_response(window_now())

    @extend_schema(operation_id="set_undo_window", request=UndoWindowBody, responses=UndoWindowField)
    def put(self, request: HttpRequest) -> Response:
        """Let a yes to what is least be taken back for so many seconds, from the next one on. Raises
        InvalidInput (400), Stale (412)."""
        body, who = validate_input(UndoWindowBody, request.data), get_caller(request)
        return _build_undo_window_response(
            set_undo_window(
                who.tenant, body["seconds"], expected=expected_version(request), by=who.principal,
                reason=body["reason"],
            )
        )  # fmt: skip


class DecisionUndo(APIView):
    """Taking a yes back. Who may is judged per request."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="undo_approval", request=UndoBody, responses=ApprovalField)
    def post(self, request: HttpRequest, request_id: str) -> Response:
        """Take back the yes that stands (`deferred`): 200 with the request, which waits as before; 403
        another's, 409 too late, there is none, or it is another. Each time takes an idempotency key of its
        own: the same key again answers as before and takes nothing back.
        """
        found = uuid_or_none(request_id)
        if found is None:
            raise RequestNotFound
        meant, who = validate_input(UndoBody, request.data).get("deferred"), get_caller(request)

        def undone() -> StoredResponse:
            back = undo_deferred_approval(who.tenant, found, who.principal, deferral=meant)
            with tenant_transaction(who.tenant):
                return StoredResponse(200, encode_request_detail(back, who.principal))

        return post_once(request, undone)


def _build_undo_window_response(now: WindowNow) -> Response:
    row = now.row
    body = {
        "seconds": now.seconds, "version": now.version, "reason": row.reason if row is not None else "",
        "at": row.at.isoformat() if row is not None else None,
    }  # fmt: skip
    return Response(body, headers={"ETag": f'"{now.version}"'})

"""Taking a yes back, and how long that can be done (docs/console.md)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from approvals.actions.undo import undo
from approvals.actions.undo_settings import LONGEST_REASON, set_undo_window
from approvals.api.requests import ApprovalField, whole
from approvals.core.errors import RequestNotFound
from approvals.core.undo import LONGEST
from approvals.queries.undo import WindowNow, window_now
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant
from tenancy.rest.api_helpers import caller, expected_version, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import Answer
from tenancy.rest.permissions import requires
from tenancy.rest.serializer_fields import Exact, Id, Text, Whole, asked


class UndoBody(Exact):
    """Which yes is meant, by the `id` in `deferred`; without it the one that stands."""

    deferred = Id(required=False)


class UndoWindowBody(Exact):
    """For how many seconds a yes can be taken back, 0 for not at all, and why."""

    seconds = Whole(min_value=0, max_value=LONGEST)
    reason = Text(max_length=LONGEST_REASON)


class UndoWindowField(serializers.Serializer[Any]):
    """What holds for the next yes; version 0 is what ships."""

    seconds = serializers.IntegerField()
    version = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)


class UndoWindows(APIView):
    """How long a yes can be taken back in this tenant."""

    reading, writing = requires(Scope.READ), requires(Scope.ADMIN)

    def get_permissions(self) -> list[BasePermission]:
        """READ for what only looks, ADMIN for what changes."""
        return [self.reading() if self.request.method in {"GET", "HEAD", "OPTIONS"} else self.writing()]

    @extend_schema(operation_id="get_undo_window", responses=UndoWindowField)
    def get(self, request: HttpRequest) -> Response:
        """What holds, with its version as the ETag."""
        with tenant(caller(request).tenant):
            return _told(window_now())

    @extend_schema(operation_id="set_undo_window", request=UndoWindowBody, responses=UndoWindowField)
    def put(self, request: HttpRequest) -> Response:
        """Let a yes to what is least be taken back for so many seconds, from the next one on. Raises
        InvalidInput (400), Stale (412)."""
        body, who = asked(UndoWindowBody, request.data), caller(request)
        return _told(
            set_undo_window(
                who.tenant, body["seconds"], expected=expected_version(request), by=who.principal,
                reason=body["reason"],
            )
        )  # fmt: skip


class Undoing(APIView):
    """Taking a yes back. Who may is judged per request."""

    permission_classes: list[type[BasePermission]] = [requires(Scope.READ)]

    @extend_schema(operation_id="undo_approval", request=UndoBody, responses=ApprovalField)
    def post(self, request: HttpRequest, request_id: str) -> Response:
        """Take back the yes that stands (`deferred`): 200 with the request, which waits as before; 403
        another's, 409 too late, there is none, or it is another. Each time takes an idempotency key of its
        own: the same key again answers as before and takes nothing back.
        """
        found = uuid_or_none(request_id)
        if found is None:
            raise RequestNotFound
        meant, who = asked(UndoBody, request.data).get("deferred"), caller(request)

        def undone() -> Answer:
            back = undo(who.tenant, found, who.principal, deferral=meant)
            with tenant(who.tenant):
                return Answer(200, whole(back, who.principal))

        return post_once(request, undone)


def _told(now: WindowNow) -> Response:
    row = now.row
    body = {
        "seconds": now.seconds, "version": now.version, "reason": row.reason if row is not None else "",
        "at": row.at.isoformat() if row is not None else None,
    }  # fmt: skip
    return Response(body, headers={"ETag": f'"{now.version}"'})

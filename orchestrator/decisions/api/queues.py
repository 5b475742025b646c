"""The API of the queues in which people decide (R-SEC-11, R-APPR-5)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import format_timestamp
from orchestrator.decisions.actions.queues import close_queue, reopen_queue
from orchestrator.decisions.queries.queues import QueueNow, queue_now, queues_now
from orchestrator.publishing.api.catalog import ScopedAPIView
from tenancy.actions.queues import add_queue, describe_queue
from tenancy.core.queues import LONGEST_DESCRIPTION, QUEUE_NAME
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, post_once
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    FormattedCharField,
    StrictCharField,
    StrictSerializer,
    page_of,
    path_name,
    validate_input,
)


class QueueField(serializers.Serializer[Any]):
    """A queue. `people` is how many decide in it: with none nobody clears it, but for the queue `submitter`,
    in which whoever submitted a task answers. `keeps_open` says what names it or waits in it: while it is not
    empty the queue is not closed."""

    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    people = serializers.IntegerField()
    requests = serializers.IntegerField()
    reviews = serializers.IntegerField()
    keeps_open = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    created_by = serializers.UUIDField(allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)
    closed_by = serializers.UUIDField(allow_null=True)


class QueueReasonBody(StrictSerializer):
    """Why."""

    reason = StrictCharField(max_length=500)


class DescribeQueueBody(QueueReasonBody):
    """What a queue is for, on one line, and why that is said."""

    description = StrictCharField(max_length=LONGEST_DESCRIPTION, allow_blank=True)


class QueueBody(DescribeQueueBody):
    """A queue to add. Its name never changes: lower-case letters, digits, - and _, a letter first."""

    name = FormattedCharField(rf"^{QUEUE_NAME.pattern}$")


class ByInspector(ScopedAPIView):
    """Whoever may look at people looks at queues; administrators change them."""

    reading = make_scope_permission(Scope.INSPECT)


class Queues(ByInspector):
    """The tenant's queues."""

    @extend_schema(operation_id="list_queues", responses=page_of(QueueField, "QueuePage"))
    def get(self, request: Request) -> Response:
        """Every queue by its name, closed ones last, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [_serialize_queue(one) for one in queues_now()]
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(operation_id="add_queue", request=QueueBody, responses={201: QueueField})
    def post(self, request: Request) -> Response:
        """Add a queue, which memberships, tools, workflows and boundaries may name from now on. Raises
        InvalidInput (400)."""
        body, who = validate_input(QueueBody, request.data), get_caller(request)

        def build_response() -> StoredResponse:
            add_queue(who.tenant, body["name"], body["description"], by=who.principal, reason=body["reason"])
            return StoredResponse(201, _load_serialized_queue(who.tenant, body["name"]))

        return post_once(request, build_response)


class OneQueue(ByInspector):
    """One queue."""

    @extend_schema(operation_id="get_queue", responses=QueueField)
    def get(self, request: Request, queue: str) -> Response:
        """The queue as it stands. Raises NotFound."""
        return Response(_load_serialized_queue(get_caller(request).tenant, path_name(queue)))

    @extend_schema(operation_id="describe_queue", request=DescribeQueueBody, responses=QueueField)
    def patch(self, request: Request, queue: str) -> Response:
        """Say what the queue is for. Raises NotFound, InvalidInput (400)."""
        body, who = validate_input(DescribeQueueBody, request.data), get_caller(request)
        describe_queue(
            who.tenant, path_name(queue), body["description"], by=who.principal, reason=body["reason"]
        )
        return Response(_load_serialized_queue(who.tenant, queue))


class CloseQueue(ByInspector):
    """Closing a queue."""

    @extend_schema(operation_id="close_queue", request=QueueReasonBody, responses=QueueField)
    def post(self, request: Request, queue: str) -> Response:
        """Nothing new may name it. Raises NotFound, QueueInUse (409) while something names it or waits in
        it."""
        reason, who = validate_input(QueueReasonBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            close_queue(who.tenant, path_name(queue), by=who.principal, reason=reason)
            return StoredResponse(200, _load_serialized_queue(who.tenant, queue))

        return post_once(request, build_response)


class ReopenQueue(ByInspector):
    """Opening a closed queue again."""

    @extend_schema(operation_id="reopen_queue", request=QueueReasonBody, responses=QueueField)
    def post(self, request: Request, queue: str) -> Response:
        """It may be named again. Raises NotFound."""
        reason, who = validate_input(QueueReasonBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            reopen_queue(who.tenant, path_name(queue), by=who.principal, reason=reason)
            return StoredResponse(200, _load_serialized_queue(who.tenant, queue))

        return post_once(request, build_response)


def _load_serialized_queue(tenant_id: UUID, name: str) -> dict[str, Any]:
    with tenant_transaction(tenant_id):
        return _serialize_queue(queue_now(name))


def _serialize_queue(found: QueueNow) -> dict[str, Any]:
    row = found.row
    return {
        "name": row.name,
        "description": row.description,
        "people": len(found.people),
        "requests": found.requests,
        "reviews": found.reviews,
        "keeps_open": list(found.keeps_open),
        "created_at": format_timestamp(row.created_at),
        "created_by": str(row.created_by) if row.created_by else None,
        "closed_at": format_timestamp(row.closed_at),
        "closed_by": str(row.closed_by) if row.closed_by else None,
    }

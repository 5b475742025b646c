"""The API of webhooks: endpoints, their secrets and their delivery log (R-API-3, R-API-6)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import ReasonBody
from orchestrator.notifications.actions.webhooks import (
    NewSecret,
    add_webhook,
    remove_webhook,
    replay_delivery,
    rotate_secret,
    try_webhook,
    turn_on,
)
from orchestrator.notifications.api.webhook_serializers import (
    DeliveryField,
    DeliveryRow,
    WebhookBody,
    WebhookField,
    WebhookMade,
    delivery_shown,
    webhook_shown,
    whole_delivery,
)
from orchestrator.notifications.queries import (
    deliveries_of,
    delivery_of,
    list_deliveries_with_attempts,
    list_webhook_endpoints,
    webhook_of,
    webhooks_now,
)
from orchestrator.publishing.api.catalog import ScopedAPIView
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, paginate_rows, post_once, uuid_or_none
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import PageQuery, page_of, validate_input


class ByAdmin(ScopedAPIView):
    """Where the endpoints are, and what they were told, is for administrators."""

    reading = make_scope_permission(Scope.ADMIN)


class Webhooks(ByAdmin):
    """The endpoints of the tenant."""

    @extend_schema(operation_id="list_webhooks", responses=page_of(WebhookField, "WebhookPage"))
    def get(self, request: Request) -> Response:
        """All of them by name, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [webhook_shown(one) for one in webhooks_now()]
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(operation_id="add_webhook", request=WebhookBody, responses={201: WebhookMade})
    def post(self, request: Request) -> Response:
        """Add one; its signing secret is in this answer and nowhere else. Raises InvalidInput, EgressRefused
        (422), NameTaken (409)."""
        body, who = validate_input(WebhookBody, request.data), get_caller(request)

        def add_new_webhook() -> NewSecret:
            return add_webhook(
                who.tenant, name=body["name"], url=body["url"], events=tuple(body["events"]),
                by=who.principal, reason=body["reason"],
            )  # fmt: skip

        return _secret_once(request, 201, add_new_webhook)


class OneWebhook(ByAdmin):
    """One endpoint."""

    @extend_schema(operation_id="get_webhook", responses=WebhookField)
    def get(self, request: Request, webhook_id: str) -> Response:
        """It. Raises NotFound."""
        return Response(_serialize_webhook(get_caller(request).tenant, uuid_or_none(webhook_id)))

    @extend_schema(operation_id="remove_webhook", responses={204: None})
    def delete(self, request: Request, webhook_id: str) -> Response:
        """Send nothing to it any more; what waits for it is given up. Raises NotFound."""
        who = get_caller(request)
        remove_webhook(who.tenant, uuid_or_none(webhook_id), by=who.principal)
        return Response(status=204)


class Rotate(ByAdmin):
    """Rotating an endpoint's secret."""

    @extend_schema(operation_id="rotate_webhook_secret", request=ReasonBody, responses={200: WebhookMade})
    def post(self, request: Request, webhook_id: str) -> Response:
        """A new secret; the old one signs beside it for a day. Raises NotFound."""
        reason, who = validate_input(ReasonBody, request.data)["reason"], get_caller(request)

        def rotate_webhook_secret() -> NewSecret:
            return rotate_secret(who.tenant, uuid_or_none(webhook_id), by=who.principal, reason=reason)

        return _secret_once(request, 200, rotate_webhook_secret)


class TurnOn(ByAdmin):
    """Turning an endpoint on again."""

    @extend_schema(operation_id="turn_on_webhook", request=ReasonBody, responses={200: WebhookField})
    def post(self, request: Request, webhook_id: str) -> Response:
        """Send to it again, what has waited first. Raises NotFound."""
        reason, who = validate_input(ReasonBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            made = turn_on(who.tenant, uuid_or_none(webhook_id), by=who.principal, reason=reason)
            return StoredResponse(200, _serialize_webhook(who.tenant, made.id))

        return post_once(request, build_response)


class Try(ByAdmin):
    """Trying an endpoint."""

    @extend_schema(operation_id="test_webhook", request=ReasonBody, responses={200: DeliveryField})
    def post(self, request: Request, webhook_id: str) -> Response:
        """Send it a message of type webhook.test now; its log says what came of it. Raises NotFound,
        WebhookOff (409)."""
        validate_input(ReasonBody, request.data)
        who, wanted = get_caller(request), uuid_or_none(webhook_id)

        def build_response() -> StoredResponse:
            delivery = try_webhook(who.tenant, wanted, by=who.principal)
            return StoredResponse(200, _serialize_delivery(who.tenant, wanted, delivery))

        return post_once(request, build_response)


class Deliveries(ByAdmin):
    """An endpoint's delivery log."""

    @extend_schema(
        operation_id="list_webhook_deliveries", parameters=[PageQuery],
        responses=page_of(DeliveryRow, "DeliveryPage"),
    )  # fmt: skip
    def get(self, request: Request, webhook_id: str) -> Response:
        """Newest first. Raises NotFound."""
        with tenant_transaction(get_caller(request).tenant):
            rows = deliveries_of(webhook_of(uuid_or_none(webhook_id)))
            return paginate_rows(request, rows, delivery_shown)


class OneDelivery(ByAdmin):
    """One delivery."""

    @extend_schema(operation_id="get_webhook_delivery", responses=DeliveryField)
    def get(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """It, with its body and every try. Raises NotFound."""
        wanted = uuid_or_none(delivery_id)
        return Response(_serialize_delivery(get_caller(request).tenant, uuid_or_none(webhook_id), wanted))


class ReplayDelivery(ByAdmin):
    """Replaying a delivery."""

    @extend_schema(operation_id="replay_webhook_delivery", request=ReasonBody, responses={200: DeliveryField})
    def post(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """Send the message again under its own id, now. Raises NotFound, WebhookOff (409)."""
        validate_input(ReasonBody, request.data)
        who, hook, wanted = get_caller(request), uuid_or_none(webhook_id), uuid_or_none(delivery_id)

        def build_response() -> StoredResponse:
            replay_delivery(who.tenant, hook, wanted, by=who.principal)
            return StoredResponse(200, _serialize_delivery(who.tenant, hook, wanted))

        return post_once(request, build_response)


def _secret_once(request: Request, status: int, make: Any) -> Response:
    """Answer with a new secret.

    The response stored for an Idempotency-Key does not contain the secret: it is stored sealed, or not at all
    (R-SEC-4).
    """
    who, clear = get_caller(request), []

    def made() -> StoredResponse:
        new: NewSecret = make()
        clear.append(new.clear)
        return StoredResponse(status, {**_serialize_webhook(who.tenant, new.webhook.id), "secret": None})

    response = post_once(request, made)
    if clear:
        response.data = {**response.data, "secret": clear[0]}
    return response


def _serialize_webhook(tenant_id: UUID, webhook_id: UUID | None) -> dict[str, Any]:
    with tenant_transaction(tenant_id):
        return webhook_shown(list_webhook_endpoints([webhook_of(webhook_id)])[0])


def _serialize_delivery(tenant_id: UUID, webhook_id: UUID | None, delivery_id: UUID | None) -> dict[str, Any]:
    with tenant_transaction(tenant_id):
        return whole_delivery(
            list_deliveries_with_attempts([delivery_of(webhook_of(webhook_id), delivery_id)])[0]
        )

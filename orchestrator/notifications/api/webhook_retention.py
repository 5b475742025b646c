"""The API of the retention of the webhook delivery log (R-API-3, R-API-6)."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.notifications.actions.webhook_retention import keep_log
from orchestrator.notifications.api.webhook_serializers import WebhookLogBody, WebhookLogField, keeping_shown
from orchestrator.notifications.api.webhooks import ByAdmin
from orchestrator.notifications.queries import KeepingNow, keeping_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import expected_version, get_caller
from tenancy.rest.serializer_fields import validate_input


class WebhookLog(ByAdmin):
    """How long the log is kept."""

    @extend_schema(operation_id="get_webhook_log", responses=WebhookLogField)
    def get(self, request: Request) -> Response:
        """What holds, with its version as the ETag."""
        with tenant_transaction(get_caller(request).tenant):
            return _build_retention_response(keeping_now())

    @extend_schema(operation_id="set_webhook_log", request=WebhookLogBody, responses=WebhookLogField)
    def put(self, request: Request) -> Response:
        """Keep what was taken or given up for so many days from then; what waits is kept in any case. Raises
        InvalidInput (400), Stale (412)."""
        body, who = validate_input(WebhookLogBody, request.data), get_caller(request)
        return _build_retention_response(
            keep_log(
                who.tenant, body["days"], expected=expected_version(request), by=who.principal,
                reason=body["reason"],
            )
        )  # fmt: skip


def _build_retention_response(now: KeepingNow) -> Response:
    return Response(keeping_shown(now), headers={"ETag": f'"{now.version}"'})

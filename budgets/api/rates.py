"""How much a tenant, and each of its keys, may submit (R-BUDGET-11)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from budgets.actions import change_rates, newest_rates
from budgets.core.rates import NAMES, Rates
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.rest.api_helpers import expected_tag, get_caller
from tenancy.rest.api_view import APIView
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    validate_input,
)

MOST = 1_000_000


class RatesField(serializers.Serializer[Any]):
    """Limits of admission; null is no limit. `concurrent_runs` counts runs that are queued or at work,
    `queue_depth` the queued alone; `key_…` hold for each principal."""

    submissions_per_minute = serializers.IntegerField(allow_null=True)
    concurrent_runs = serializers.IntegerField(allow_null=True)
    queue_depth = serializers.IntegerField(allow_null=True)
    key_submissions_per_minute = serializers.IntegerField(allow_null=True)
    key_concurrent_runs = serializers.IntegerField(allow_null=True)
    key_queue_depth = serializers.IntegerField(allow_null=True)


class RatesBody(StrictSerializer):
    """All six limits; null is none."""

    submissions_per_minute = StrictIntegerField(allow_null=True, min_value=1, max_value=MOST)
    concurrent_runs = StrictIntegerField(allow_null=True, min_value=1, max_value=MOST)
    queue_depth = StrictIntegerField(allow_null=True, min_value=1, max_value=MOST)
    key_submissions_per_minute = StrictIntegerField(allow_null=True, min_value=1, max_value=MOST)
    key_concurrent_runs = StrictIntegerField(allow_null=True, min_value=1, max_value=MOST)
    key_queue_depth = StrictIntegerField(allow_null=True, min_value=1, max_value=MOST)
    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")


class TenantRates(APIView):
    """The limits of the caller's tenant."""

    def get_permissions(self) -> list[BasePermission]:
        """READ to look, ADMIN to set."""
        scope = Scope.ADMIN if self.request.method == "PUT" else Scope.READ
        return [make_scope_permission(scope)()]

    @extend_schema(operation_id="get_rates", responses=RatesField)
    def get(self, request: Request) -> Response:
        """The limits in force, with an ETag."""
        who = get_caller(request).tenant
        with tenant_transaction(who):
            return _build_rates_response(newest_rates(who, raw_cursor()))

    @extend_schema(operation_id="set_rates", request=RatesBody, responses=RatesField)
    def put(self, request: Request) -> Response:
        """Set all six; they hold from the next task on. With If-Match only those that were looked at: else
        Stale (412)."""
        who, body = get_caller(request), validate_input(RatesBody, request.data)
        reason = body.pop("reason")
        limits = change_rates(
            who.tenant, Rates(**{name: body[name] for name in NAMES}), by=who.principal, reason=reason,
            expected=expected_tag(request),
        )  # fmt: skip
        return _build_rates_response(limits)


def _build_rates_response(limits: Rates) -> Response:
    return Response(limits.model_dump(), headers={"ETag": f'"{limits.tag}"'})

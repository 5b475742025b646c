"""A tenant's ceilings, and what of them is spent (R-API-2, R-BUDGET-9)."""

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from budgets.actions import ensure_tenant_windows, newest_ceilings
from budgets.core.ceilings import Ceilings
from budgets.queries.tenant import Window, windows_now
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.tenants.actions.limit_changes import ask_for_ceilings
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.rest.api_helpers import build_etag_header, expected_tag, get_caller, unless_known
from tenancy.rest.api_view import APIView
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import Amount, StrictCharField, StrictSerializer, validate_input
from traces.core.canonical import format_decimal


class WindowField(serializers.Serializer[Any]):
    """A day or a month of the tenant's time zone, in US$. `left` is null where there is no ceiling."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    spent_usd = serializers.CharField()
    reserved_usd = serializers.CharField()
    left_usd = serializers.CharField(allow_null=True)


class CeilingsField(serializers.Serializer[Any]):
    """The ceilings in US$ as decimal text; null is no ceiling."""

    per_run_usd = serializers.CharField(allow_null=True)
    daily_usd = serializers.CharField(allow_null=True)
    monthly_usd = serializers.CharField(allow_null=True)
    day = WindowField()
    month = WindowField()


class CeilingsBody(StrictSerializer):
    """All three ceilings; null is none."""

    per_run_usd = Amount(allow_null=True)
    daily_usd = Amount(allow_null=True)
    monthly_usd = Amount(allow_null=True)
    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")


class TenantCeilings(APIView):
    """The ceilings of the caller's tenant."""

    def get_permissions(self) -> list[BasePermission]:
        """READ to look, ADMIN to set."""
        scope = Scope.ADMIN if self.request.method == "PUT" else Scope.READ
        return [make_scope_permission(scope)()]

    @extend_schema(
        operation_id="get_ceilings",
        responses={200: CeilingsField, 304: OpenApiResponse(description="As it was under If-None-Match.")},
    )
    def get(self, request: Request) -> HttpResponseBase | Response:
        """Ceilings and what is spent of them, with an ETag that changes with both."""
        ceilings, body = ceilings_field(get_caller(request).tenant)
        return unless_known(request, body, ceilings.tag)

    @extend_schema(
        operation_id="set_ceilings", request=CeilingsBody,
        responses={200: CeilingsField, 202: ToolProposalField},
    )  # fmt: skip
    def put(self, request: Request) -> Response:
        """Set all three; they hold from the next reservation on. Raising or removing one waits for a second
        administrator, where there is one (202), and needs a reason. With If-Match only those that were looked
        at. Raises InvalidInput (400), ProposalOpen (409), Stale (412)."""
        who, body = get_caller(request), validate_input(CeilingsBody, request.data)
        reason = body.pop("reason")
        with tenant_transaction(who.tenant):
            tranche = newest_ceilings(who.tenant, raw_cursor()).tranche_usd
        found = ask_for_ceilings(
            who.tenant, Ceilings(**body, tranche_usd=tranche), expected=expected_tag(request),
            who=ChangeAuthor(principal=who.principal, owner=who.owner), reason=reason,
        )  # fmt: skip
        if isinstance(found, ToolProposal):
            return Response(proposal_field(found), status=202)
        ceilings, shown = ceilings_field(who.tenant)
        return Response(shown, headers=build_etag_header(shown, ceilings.tag))


def ceilings_field(tenant_id: UUID) -> tuple[Ceilings, dict[str, Any]]:
    """A tenant's ceilings in force, and them as the API says them."""
    with tenant_transaction(tenant_id):
        at = database_now()
        ensure_tenant_windows(tenant_id, at)
        ceilings, windows = newest_ceilings(tenant_id, raw_cursor()), windows_now(at)
    amounts = {
        name: None if (amount := getattr(ceilings, name)) is None else format_decimal(amount)
        for name in ("per_run_usd", "daily_usd", "monthly_usd")
    }
    return ceilings, {
        **amounts,
        "day": _serialize_budget_window(windows["tenant_day"]),
        "month": _serialize_budget_window(windows["tenant_month"]),
    }


def _serialize_budget_window(window: Window) -> dict[str, Any]:
    return {
        "starts_at": window.start.isoformat(),
        "ends_at": window.end.isoformat(),
        "spent_usd": format_decimal(window.spent),
        "reserved_usd": format_decimal(window.held),
        "left_usd": None if window.left is None else format_decimal(window.left),
    }

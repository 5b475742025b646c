"""API of a tenant's spending, forecast, spread of run figures, and alerts (R-BUDGET-10, 14)."""

from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from budgets.actions import ensure_tenant_windows
from budgets.core.statistics.distribution import Spread
from budgets.models import Alert
from budgets.queries.alerts import standing_alerts
from budgets.queries.expenses import METRICS, Share, get_spending, get_usage_spreads, of_month, workflows_run
from budgets.queries.tenant import Window, list_day_windows, windows_now
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.rest.api_helpers import get_caller
from tenancy.rest.api_view import APIView
from tenancy.rest.permissions import ReachesTenant, make_scope_permission
from tenancy.rest.serializer_fields import FormattedCharField, StrictSerializer, validate_input
from traces.core.canonical import format_decimal

DAYS = 30


class OutlookField(serializers.Serializer[Any]):
    """Where a window is heading at the pace so far, in US$; null in its first hour."""

    daily_usd = serializers.CharField()
    by_the_end_usd = serializers.CharField()
    stops_at = serializers.DateTimeField(allow_null=True)


class SpentField(serializers.Serializer[Any]):
    """A day or a month of the tenant's time zone, in US$."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    spent_usd = serializers.CharField()
    reserved_usd = serializers.CharField()
    limit_usd = serializers.CharField(allow_null=True)
    outlook = OutlookField(allow_null=True)


class ShareField(serializers.Serializer[Any]):
    """What went to one workflow, model or tool."""

    name = serializers.CharField()
    spent_usd = serializers.CharField()
    calls = serializers.IntegerField()


class DaySpentField(serializers.Serializer[Any]):
    """One day."""

    starts_at = serializers.DateTimeField()
    spent_usd = serializers.CharField()


class AlertField(serializers.Serializer[Any]):
    """That a window came to a share of its ceiling."""

    id = serializers.UUIDField()
    window = serializers.ChoiceField(choices=["day", "month"])
    threshold = serializers.IntegerField()
    limit_usd = serializers.CharField()
    spent_usd = serializers.CharField()
    reserved_usd = serializers.CharField()
    at = serializers.DateTimeField()
    window_ends_at = serializers.DateTimeField()


class BudgetsField(serializers.Serializer[Any]):
    """The tenant's money. Shares are of this month's ended runs; the rest is of runs under way."""

    day = SpentField()
    month = SpentField()
    by_workflow = ShareField(many=True)
    by_model = ShareField(many=True)
    by_tool = ShareField(many=True)
    days = DaySpentField(many=True)
    alerts = AlertField(many=True)


class DriftField(serializers.Serializer[Any]):
    """The medians before and now, the distance of the two distributions, and the distance of chance."""

    before = serializers.CharField()
    now = serializers.CharField()
    distance = serializers.FloatField()
    critical = serializers.FloatField()


class SpreadField(serializers.Serializer[Any]):
    """The spread of one figure over the newest ended runs, beside the newest of their caps."""

    metric = serializers.ChoiceField(choices=list(METRICS))
    runs = serializers.IntegerField()
    p50 = serializers.CharField()
    p90 = serializers.CharField()
    p99 = serializers.CharField()
    highest = serializers.CharField()
    cap = serializers.CharField(allow_null=True)
    near_cap = serializers.IntegerField()
    drift = DriftField(allow_null=True)


class FiguresField(serializers.Serializer[Any]):
    """The workflow that is shown, all that could be, and its spreads."""

    workflow = serializers.CharField(allow_blank=True)
    workflows = serializers.ListField(child=serializers.CharField())
    spreads = SpreadField(many=True)


class Budgets(APIView):
    """What the caller's tenant spends."""

    permission_classes = [make_scope_permission(Scope.READ), ReachesTenant]

    @extend_schema(operation_id="get_budgets", responses=BudgetsField)
    def get(self, request: Request) -> Response:
        """Today, this month with its forecast, by workflow, model and tool, the last 30 days, and alerts."""
        who = get_caller(request).tenant
        with tenant_transaction(who):
            return Response(_build_budgets_body(who, database_now()))


class FiguresQuery(StrictSerializer):
    """Whose figures. Without: those of the first workflow by name."""

    workflow = FormattedCharField(r"^[a-z0-9][a-z0-9_-]{0,63}$", required=False)


class Figures(APIView):
    """How a workflow's runs are spread."""

    permission_classes = [make_scope_permission(Scope.READ), ReachesTenant]

    @extend_schema(
        operation_id="get_figures",
        parameters=[FiguresQuery],
        responses=FiguresField,
    )
    def get(self, request: Request) -> Response:
        """Steps, depth, tokens, cost and time at work against their caps, with drift."""
        wanted = validate_input(FiguresQuery, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            known = list(workflows_run())
            workflow = wanted.get("workflow", next(iter(known), ""))
            found = get_usage_spreads(workflow) if workflow in known else {}
        shown = [_encode_spread(metric, spread) for metric, spread in found.items()]
        return Response({"workflow": workflow, "workflows": known, "spreads": shown})


def _build_budgets_body(who: UUID, at: datetime) -> dict[str, Any]:
    ensure_tenant_windows(who, at)
    zone = ZoneInfo(Tenant.objects.values_list("time_zone", flat=True).get(id=who))
    windows, went = windows_now(at), get_spending(*of_month(at, zone))
    return {
        "day": _encode_window(windows["tenant_day"], at),
        "month": _encode_window(windows["tenant_month"], at),
        "by_workflow": [_encode_share(share) for share in went.workflows],
        "by_model": [_encode_share(share) for share in went.models],
        "by_tool": [_encode_share(share) for share in went.tools],
        "days": [
            {"starts_at": day.start.isoformat(), "spent_usd": format_decimal(day.spent)}
            for day in list_day_windows(at, DAYS)
        ],
        "alerts": [_encode_alert(alert) for alert in standing_alerts(at)],
    }


def _encode_window(window: Window, at: datetime) -> dict[str, Any]:
    outlook = window.outlook(at)
    return {
        "starts_at": window.start.isoformat(),
        "ends_at": window.end.isoformat(),
        "spent_usd": format_decimal(window.spent),
        "reserved_usd": format_decimal(window.held),
        "limit_usd": None if window.limit is None else format_decimal(window.limit),
        "outlook": outlook
        and {
            "daily_usd": format_decimal(outlook.daily),
            "by_the_end_usd": format_decimal(outlook.by_the_end),
            "stops_at": outlook.stops_at and outlook.stops_at.isoformat(),
        },
    }


def _encode_share(share: Share) -> dict[str, Any]:
    return {"name": share.name, "spent_usd": format_decimal(share.usd), "calls": share.calls}


def _encode_alert(alert: Alert) -> dict[str, Any]:
    return {
        "id": str(alert.id),
        "window": alert.kind.removeprefix("tenant_"),
        "threshold": alert.threshold,
        "limit_usd": format_decimal(alert.limit_usd),
        "spent_usd": format_decimal(alert.spent_usd),
        "reserved_usd": format_decimal(alert.held_usd),
        "at": alert.at.isoformat(),
        "window_ends_at": alert.window_end.isoformat(),
    }


def _encode_spread(metric: str, spread: Spread) -> dict[str, Any]:
    drift = spread.drift
    return {
        "metric": metric,
        "runs": spread.count,
        **{name: format_decimal(getattr(spread, name)) for name in ("p50", "p90", "p99", "highest")},
        "cap": None if spread.cap is None else format_decimal(spread.cap),
        "near_cap": spread.near,
        "drift": drift
        and {
            "before": format_decimal(drift.before),
            "now": format_decimal(drift.now),
            "distance": drift.distance,
            "critical": drift.critical,
        },
    }

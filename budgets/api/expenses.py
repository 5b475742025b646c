"""What a tenant spent, where it is heading, how its runs are spread, and its alerts (R-BUDGET-10, 14)."""

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
from budgets.queries.expenses import METRICS, Share, of_month, spending, spreads, workflows_run
from budgets.queries.tenant import Window, days, windows_now
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant
from tenancy.models import Tenant
from tenancy.rest.api_helpers import caller
from tenancy.rest.api_view import APIView
from tenancy.rest.permissions import ReachesTenant, requires
from tenancy.rest.serializer_fields import Exact, Formed, asked
from traces.core.canonical import plain

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

    permission_classes = [requires(Scope.READ), ReachesTenant]

    @extend_schema(operation_id="get_budgets", responses=BudgetsField)
    def get(self, request: Request) -> Response:
        """Today, this month with its forecast, by workflow, model and tool, the last 30 days, and alerts."""
        who = caller(request).tenant
        with tenant(who):
            return Response(_budgets(who, database_now()))


class FiguresQuery(Exact):
    """Whose figures. Without: those of the first workflow by name."""

    workflow = Formed(r"^[a-z0-9][a-z0-9_-]{0,63}$", required=False)


class Figures(APIView):
    """How a workflow's runs are spread."""

    permission_classes = [requires(Scope.READ), ReachesTenant]

    @extend_schema(
        operation_id="get_figures",
        parameters=[FiguresQuery],
        responses=FiguresField,
    )
    def get(self, request: Request) -> Response:
        """Steps, depth, tokens, cost and time at work against their caps, with drift."""
        wanted = asked(FiguresQuery, request.query_params)
        with tenant(caller(request).tenant):
            known = list(workflows_run())
            workflow = wanted.get("workflow", next(iter(known), ""))
            found = spreads(workflow) if workflow in known else {}
        shown = [_spread(metric, spread) for metric, spread in found.items()]
        return Response({"workflow": workflow, "workflows": known, "spreads": shown})


def _budgets(who: UUID, at: datetime) -> dict[str, Any]:
    ensure_tenant_windows(who, at)
    zone = ZoneInfo(Tenant.objects.values_list("time_zone", flat=True).get(id=who))
    windows, went = windows_now(at), spending(*of_month(at, zone))
    return {
        "day": _spent(windows["tenant_day"], at),
        "month": _spent(windows["tenant_month"], at),
        "by_workflow": [_share(share) for share in went.workflows],
        "by_model": [_share(share) for share in went.models],
        "by_tool": [_share(share) for share in went.tools],
        "days": [
            {"starts_at": day.start.isoformat(), "spent_usd": plain(day.spent)} for day in days(at, DAYS)
        ],
        "alerts": [_alert(alert) for alert in standing_alerts(at)],
    }


def _spent(window: Window, at: datetime) -> dict[str, Any]:
    outlook = window.outlook(at)
    return {
        "starts_at": window.start.isoformat(),
        "ends_at": window.end.isoformat(),
        "spent_usd": plain(window.spent),
        "reserved_usd": plain(window.held),
        "limit_usd": None if window.limit is None else plain(window.limit),
        "outlook": outlook
        and {
            "daily_usd": plain(outlook.daily),
            "by_the_end_usd": plain(outlook.by_the_end),
            "stops_at": outlook.stops_at and outlook.stops_at.isoformat(),
        },
    }


def _share(share: Share) -> dict[str, Any]:
    return {"name": share.name, "spent_usd": plain(share.usd), "calls": share.calls}


def _alert(alert: Alert) -> dict[str, Any]:
    return {
        "id": str(alert.id),
        "window": alert.kind.removeprefix("tenant_"),
        "threshold": alert.threshold,
        "limit_usd": plain(alert.limit_usd),
        "spent_usd": plain(alert.spent_usd),
        "reserved_usd": plain(alert.held_usd),
        "at": alert.at.isoformat(),
        "window_ends_at": alert.window_end.isoformat(),
    }


def _spread(metric: str, spread: Spread) -> dict[str, Any]:
    drift = spread.drift
    return {
        "metric": metric,
        "runs": spread.count,
        **{name: plain(getattr(spread, name)) for name in ("p50", "p90", "p99", "highest")},
        "cap": None if spread.cap is None else plain(spread.cap),
        "near_cap": spread.near,
        "drift": drift
        and {
            "before": plain(drift.before),
            "now": plain(drift.now),
            "distance": drift.distance,
            "critical": drift.critical,
        },
    }

"""What a tenant's people are told of its days and months (R-BUDGET-10). In the tenant's context."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from budgets.models import Alert


def alerts() -> "QuerySet[Alert]":
    """Every alert of the tenant."""
    return Alert.objects.all()


def standing_alerts(at: datetime) -> Sequence[Alert]:
    """The highest alert of each window that holds `at`, the day's before the month's."""
    found = Alert.objects.filter(window_end__gt=at, window_start__lte=at).order_by("kind", "threshold")
    return list({alert.kind: alert for alert in found}.values())

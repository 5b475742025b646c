"""What a tenant's people are told of its days and months (R-BUDGET-10). In the tenant's context."""

from collections.abc import Sequence
from datetime import datetime

from budgets.core.posting import LineState
from budgets.core.statistics.alert_thresholds import holds_still
from budgets.models import Alert
from budgets.queries.tenant import windows_now
from tenancy.core.event_kinds import BUDGET_ALERT
from tenancy.models import Webhook


def standing_alerts(at: datetime) -> Sequence[Alert]:
    """The highest alert of each window that holds `at` and is still as full, the day's before the month's.

    What a raised ceiling has overtaken is told no more; that it was told once stays written.
    """
    lines = {
        kind: LineState(limit=window.limit, used=window.spent, reserved=window.held)
        for kind, window in windows_now(at).items()
    }
    found = Alert.objects.filter(window_end__gt=at, window_start__lte=at).order_by("kind", "threshold")
    standing = [
        alert for alert in found if alert.kind in lines and holds_still(lines[alert.kind], alert.threshold)
    ]
    return list({alert.kind: alert for alert in standing}.values())


def silent_webhooks() -> Sequence[Webhook]:
    """The endpoints that asked for alerts and are off: nobody hears of any there."""
    rows = Webhook.objects.filter(removed_at=None, events__contains=[BUDGET_ALERT]).exclude(off_at=None)
    return list(rows.defer("sealed", "sealed_before").order_by("name", "id"))

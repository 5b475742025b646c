"""Queries of current budget alerts and disabled alert webhooks, in the tenant's context.

Spec: R-BUDGET-10.
"""

from collections.abc import Sequence
from datetime import datetime

from budgets.core.posting import LineState
from budgets.core.statistics.alert_thresholds import holds_still
from budgets.models import Alert
from budgets.queries.tenant import windows_now
from tenancy.core.event_kinds import BUDGET_ALERT
from tenancy.models import Webhook


def standing_alerts(at: datetime) -> Sequence[Alert]:
    """List the highest alert per current window that still applies, the day's before the month's.

    An alert that a raised ceiling has made obsolete is left out here; its row remains.
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
    """List the webhooks that subscribe to alerts and are switched off, so that no alert reaches them."""
    rows = Webhook.objects.filter(removed_at=None, events__contains=[BUDGET_ALERT]).exclude(off_at=None)
    return list(rows.defer("sealed", "sealed_before").order_by("name", "id"))

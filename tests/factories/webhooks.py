"""An endpoint of a tenant, with alerts to tell it of."""

from datetime import timedelta
from uuid import UUID

from orchestrator.notifications.actions.webhooks import NewSecret, add_webhook
from orchestrator.notifications.queries import (
    DeliveryLog,
    deliveries_of,
    list_deliveries_with_attempts,
    webhook_of,
)
from orchestrator.tools.actions.private_hosts import set_places
from tenancy.core.event_kinds import KINDS
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Webhook, WebhookDelivery
from tests.doubles.webhook_receiver import Receiver
from tests.factories.budgets import ceilings, open_purse


def connect_hook(tenant_id: UUID, receiver: Receiver, name: str = "books") -> NewSecret:
    """Allow its place and add it."""
    set_places(tenant_id, (receiver.place,), expected=None, by=None, reason="A receiver of ours.")
    return add_webhook(tenant_id, name=name, url=receiver.url, events=tuple(KINDS), by=None)


def half_spent(tenant_id: UUID) -> None:
    """Half of a day's ceiling is spent: one alert."""
    ceilings(tenant_id, daily="1", tranche="0")
    purse = open_purse(tenant_id)
    effect, _ = purse.reserve({"cost_usd": "0.50"})
    purse.settle(effect, {"cost_usd": "0.50"})


def log_of(tenant_id: UUID, webhook: Webhook) -> list[DeliveryLog]:
    """Its deliveries with their tries, oldest first."""
    with tenant_transaction(tenant_id):
        return list_deliveries_with_attempts(deliveries_of(webhook).order_by("created_at", "id"))


def as_it_is(tenant_id: UUID, webhook: Webhook) -> Webhook:
    """The endpoint as it stands now."""
    with tenant_transaction(tenant_id):
        return webhook_of(webhook.id)


def make_due(tenant_id: UUID) -> None:
    """What waits is due now."""
    with tenant_transaction(tenant_id):
        long_ago = database_now() - timedelta(days=1)
        WebhookDelivery.objects.filter(state="waiting").update(next_at=long_ago)

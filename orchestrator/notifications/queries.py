"""A tenant's webhook endpoints, their deliveries and delivery attempts (R-API-6). In the tenant's context."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, QuerySet

from orchestrator.core.notifications.delivery_policy import KEPT_DAYS
from orchestrator.notifications.gateways.webhook_sender import OutgoingMessage
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import NotFound
from tenancy.models import Webhook, WebhookAttempt, WebhookDelivery, WebhookKeeping
from tenancy.secret_store import unseal_secret

SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint with the numbers of its waiting and its failed deliveries."""

    row: Webhook
    waiting: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLog:
    """A delivery with its attempts, oldest first."""

    row: WebhookDelivery
    attempts: tuple[WebhookAttempt, ...]

    @property
    def text(self) -> str:
        """The message body as it is sent."""
        return bytes(self.row.message.body).decode()

    @property
    def lost(self) -> int:
        """Number of attempts without a recorded outcome: their process died, or they still run."""
        return self.row.attempts - len(self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingNow:
    """How many days the log is kept. Version 0 means that the default applies."""

    days: int = KEPT_DAYS
    version: int = 0
    reason: str = ""
    by: UUID | None = None
    at: datetime | None = None


def keeping_now() -> KeepingNow:
    """Return the retention setting in force."""
    row = WebhookKeeping.objects.order_by("-version").first()
    if row is None:
        return KeepingNow()
    return KeepingNow(days=row.days, version=row.version, reason=row.reason, by=row.by, at=row.at)


def webhooks_now() -> list[Endpoint]:
    """List every endpoint in use, by name."""
    return list_webhook_endpoints(Webhook.objects.filter(removed_at=None).order_by("name", "id"))


def list_webhook_endpoints(rows: Iterable[Webhook]) -> list[Endpoint]:
    """Build the endpoints of these rows, in the order of the rows."""
    known = list(rows)
    found = (
        WebhookDelivery.objects.filter(webhook_id__in=[row.id for row in known])
        .exclude(state="delivered").values_list("webhook_id", "state").annotate(Count("id")).order_by()
    )  # fmt: skip
    counts = {(webhook, state): count for webhook, state, count in found}
    return [
        Endpoint(
            row=row, waiting=counts.get((row.id, "waiting"), 0), failed=counts.get((row.id, "failed"), 0)
        )
        for row in known
    ]


def webhook_of(webhook_id: UUID | None) -> Webhook:
    """Return an endpoint in use.

    Raises: NotFound, also for an endpoint of another tenant.
    """
    found = Webhook.objects.filter(id=webhook_id, removed_at=None).first() if webhook_id else None
    if found is None:
        raise NotFound
    return found


def delivery_of(webhook: Webhook, delivery_id: UUID | None) -> WebhookDelivery:
    """Return one delivery of the endpoint, with its message.

    Raises: NotFound.
    """
    rows = WebhookDelivery.objects.select_related("message").filter(webhook=webhook)
    found = rows.filter(id=delivery_id).first() if delivery_id else None
    if found is None:
        raise NotFound
    return found


def deliveries_of(webhook: Webhook) -> "QuerySet[WebhookDelivery]":
    """Return the queryset of all deliveries of the endpoint, with their messages."""
    return WebhookDelivery.objects.select_related("message").filter(webhook=webhook)


def list_deliveries_with_attempts(rows: Iterable[WebhookDelivery]) -> list[DeliveryLog]:
    """Attach the attempts to each of these deliveries."""
    known = list(rows)
    tries: dict[UUID, list[WebhookAttempt]] = {}
    for one in WebhookAttempt.objects.filter(delivery_id__in=[row.id for row in known]).order_by("number"):
        tries.setdefault(one.delivery_id, []).append(one)
    return [DeliveryLog(row=row, attempts=tuple(tries.get(row.id, ()))) for row in known]


def sending_of(delivery: WebhookDelivery, at: datetime) -> OutgoingMessage:
    """Build the request of a delivery as sent now: with today's egress permission and the secrets in force.

    Raises: SecretUnusable.
    """
    webhook, message = delivery.webhook, delivery.message
    # The list of private places is read now: it may have changed since the endpoint was saved.
    return OutgoingMessage(
        id=str(message.id), url=webhook.url, body=bytes(message.body), at=at,
        leave=leave_for(webhook.origin), secrets=secrets_of_webhook(webhook, at),
    )  # fmt: skip


def secrets_of_webhook(webhook: Webhook, at: datetime) -> tuple[str, ...]:
    """Return the newest signing secret first, then the previous one while it is still valid."""
    boxes = [bytes(webhook.sealed)]
    if webhook.sealed_before and webhook.before_until is not None and webhook.before_until > at:
        boxes.append(bytes(webhook.sealed_before))
    return tuple(
        unseal_secret(webhook.tenant_id, place_of_secret(webhook.id), box, name=webhook.name) for box in boxes
    )


def place_of_secret(webhook_id: UUID) -> str:
    """Return the context to which a signing secret is bound: this endpoint and no other."""
    return f"webhook:{webhook_id}"

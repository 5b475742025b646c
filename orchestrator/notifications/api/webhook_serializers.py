"""The request and response bodies of webhook endpoints and their deliveries (R-API-6)."""

from typing import Any

from rest_framework import serializers

from orchestrator.api.serializers import format_timestamp
from orchestrator.core.notifications.delivery_policy import FEWEST_DAYS, MOST_DAYS
from orchestrator.notifications.queries import DeliveryLog, Endpoint, KeepingNow
from tenancy.core.event_kinds import KINDS, TEST
from tenancy.models import WebhookDelivery
from tenancy.rest.serializer_fields import (
    URL,
    FormattedCharField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)

STATES = (("waiting", "waiting"), ("delivered", "delivered"), ("failed", "failed"))


class WebhookField(serializers.Serializer[Any]):
    """An endpoint. `failing_since`: nothing has got through since then; `off_why` says why nothing is sent to
    it any more; `waiting` and `failed` count its deliveries."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(choices=list(KINDS)))
    on = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    failing_since = serializers.DateTimeField(allow_null=True)
    off_at = serializers.DateTimeField(allow_null=True)
    off_why = serializers.CharField(allow_blank=True)
    old_secret_until = serializers.DateTimeField(allow_null=True)
    waiting = serializers.IntegerField()
    failed = serializers.IntegerField()


class WebhookMade(WebhookField):
    """An endpoint with its new secret, shown this once: null where the answer is given a second time under
    its Idempotency-Key, because the secret is kept nowhere in clear."""

    secret = serializers.CharField(allow_null=True)


class WebhookBody(StrictSerializer):
    """An endpoint to add: https, or http at one of the tenant's private places."""

    name = StrictCharField(max_length=80)
    url = FormattedCharField(URL)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=list(KINDS)), min_length=1, max_length=len(KINDS)
    )
    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")


class DeliveryRow(serializers.Serializer[Any]):
    """A message on its way to an endpoint. `message` is its `webhook-id`, the same at every try; `next_at` is
    null once it is delivered or given up."""

    id = serializers.UUIDField()
    message = serializers.UUIDField()
    type = serializers.ChoiceField(choices=[*KINDS, TEST])
    state = serializers.ChoiceField(choices=STATES)
    attempts = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    next_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True)


class AttemptField(serializers.Serializer[Any]):
    """One try. `status` is the answer's, null where there was none and `error` says why; `length` is how
    many bytes of it were read."""

    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    milliseconds = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    length = serializers.IntegerField(allow_null=True)


class DeliveryField(DeliveryRow):
    """A delivery with the message's body, byte for byte as it is sent, and every try written down."""

    body = serializers.CharField()
    log = serializers.ListField(child=AttemptField())


class WebhookLogField(serializers.Serializer[Any]):
    """For how many days what was taken or given up stays in the log; version 0 is what ships."""

    days = serializers.IntegerField()
    version = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)


class WebhookLogBody(StrictSerializer):
    """How long the log is to be kept, and why."""

    days = StrictIntegerField(min_value=FEWEST_DAYS, max_value=MOST_DAYS)
    reason = StrictCharField(max_length=500)


def keeping_shown(now: KeepingNow) -> dict[str, Any]:
    """Serialize the retention in force for the API."""
    return {"days": now.days, "version": now.version, "reason": now.reason, "at": format_timestamp(now.at)}


def webhook_shown(one: Endpoint) -> dict[str, Any]:
    """Serialize an endpoint for the API."""
    row = one.row
    return {
        "id": str(row.id),
        "name": row.name,
        "url": row.url,
        "events": row.events,
        "on": row.off_at is None,
        "created_at": format_timestamp(row.created_at),
        "failing_since": format_timestamp(row.failing_since),
        "off_at": format_timestamp(row.off_at),
        "off_why": row.off_why,
        "old_secret_until": format_timestamp(row.before_until),
        "waiting": one.waiting,
        "failed": one.failed,
    }


def delivery_shown(row: WebhookDelivery) -> dict[str, Any]:
    """Serialize a delivery for a list in the API."""
    return {
        "id": str(row.id),
        "message": str(row.message_id),
        "type": row.message.kind,
        "state": row.state,
        "attempts": row.attempts,
        "created_at": format_timestamp(row.created_at),
        "next_at": format_timestamp(row.next_at) if row.state == "waiting" else None,
        "done_at": format_timestamp(row.done_at),
    }


def whole_delivery(one: DeliveryLog) -> dict[str, Any]:
    """Serialize a delivery with its body and its attempts."""
    log = [
        {
            "number": each.number, "at": format_timestamp(each.at), "milliseconds": each.milliseconds,
            "status": each.status, "error": each.error, "length": each.length,
        }
        for each in one.attempts
    ]  # fmt: skip
    return {**delivery_shown(one.row), "body": one.text, "log": log}

"""An administrator's verbs over endpoints: add, rotate the secret, turn on, remove, try, replay (R-API-6)."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from orchestrator.core.common.errors import EgressRefused, NameTaken, WebhookOff
from orchestrator.core.notifications.delivery_policy import OVERLAP, admit_endpoint
from orchestrator.core.tools.egress_policy import target_of
from orchestrator.notifications.actions.webhook_delivery import deliver_now
from orchestrator.notifications.gateways.webhook_sender import secret_of
from orchestrator.notifications.queries import delivery_of, place_of_secret, webhook_of
from orchestrator.tools.gateways.egress.guarded_transport import look_before_saving
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.core.event_kinds import KINDS, TEST, encode_event_message
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Webhook, WebhookDelivery, WebhookMessage
from tenancy.secret_store import seal_secret

MOST = 20
BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """An endpoint with the secret that was made for it, in clear this once."""

    webhook: Webhook
    clear: str


def add_webhook(
    tenant_id: UUID, *, name: str, url: str, events: tuple[str, ...], by: UUID | None, reason: str = ""
) -> NewSecret:
    """Add an endpoint that is told of `events` from now on. Outermost verb: owns the transaction.

    Its address is judged as it would be when it is connected. Raises InvalidInput, EgressRefused, NameTaken.
    """
    asked = tuple(dict.fromkeys(events))
    _check_webhook_fields(name, asked)
    origin = _resolve_endpoint_origin(tenant_id, url)
    with tenant_transaction(tenant_id):
        now, made = database_now(), fresh_id()
        in_use = Webhook.objects.filter(removed_at=None)
        if in_use.filter(name=name).exists():
            raise NameTaken(name=name)
        if in_use.count() >= MOST:
            raise _build_input_error("/name", f"There are {MOST} webhooks already; remove one first.")
        clear = secret_of(secrets.token_bytes(BYTES))
        webhook = Webhook.objects.create(
            id=made, tenant_id=tenant_id, name=name, url=url, origin=origin, events=list(asked),
            created_by=by, created_at=now, sealed=seal_secret(tenant_id, place_of_secret(made), clear),
        )  # fmt: skip
        after = {"name": name, "url": url, "events": list(asked)}
        _audit_webhook_change(webhook, "webhook.add", {}, after, by, reason)
        return NewSecret(webhook=webhook, clear=clear)


def rotate_secret(
    tenant_id: UUID, webhook_id: UUID | None, *, by: UUID | None, reason: str = ""
) -> NewSecret:
    """Make a new secret; the old one signs beside it for a day. Raises NotFound."""
    with tenant_transaction(tenant_id):
        webhook, now = webhook_of(webhook_id), database_now()
        clear = secret_of(secrets.token_bytes(BYTES))
        until = now + OVERLAP
        Webhook.objects.filter(id=webhook.id).update(
            sealed=seal_secret(tenant_id, place_of_secret(webhook.id), clear), sealed_before=webhook.sealed,
            before_until=until,
        )  # fmt: skip
        _audit_webhook_change(webhook, "webhook.rotate", {}, {"old_until": until.isoformat()}, by, reason)
        return NewSecret(webhook=webhook_of(webhook_id), clear=clear)


def turn_on(tenant_id: UUID, webhook_id: UUID | None, *, by: UUID | None, reason: str = "") -> Webhook:
    """Send to it again, what has waited first. Nothing changes where it is on. Raises NotFound."""
    with tenant_transaction(tenant_id):
        webhook, now = webhook_of(webhook_id), database_now()
        if webhook.off_at is None:
            return webhook
        Webhook.objects.filter(id=webhook.id).update(
            off_at=None, off_why="", tell_at=None, told_at=None, failing_since=None
        )
        waiting = WebhookDelivery.objects.filter(webhook=webhook, state="waiting")
        waiting.update(next_at=now, tries=0)
        _audit_webhook_change(webhook, "webhook.on", {"off": webhook.off_why}, {"on": True}, by, reason)
        return webhook_of(webhook_id)


def remove_webhook(tenant_id: UUID, webhook_id: UUID | None, *, by: UUID | None, reason: str = "") -> Webhook:
    """Send nothing to it any more, and forget its secrets; its log stays. Raises NotFound."""
    with tenant_transaction(tenant_id):
        webhook, now = webhook_of(webhook_id), database_now()
        Webhook.objects.filter(id=webhook.id).update(
            removed_at=now, sealed=b"", sealed_before=None, before_until=None
        )
        WebhookDelivery.objects.filter(webhook=webhook, state="waiting").update(state="failed", done_at=now)
        _audit_webhook_change(
            webhook, "webhook.remove", {"name": webhook.name, "url": webhook.url}, {}, by, reason
        )
        return webhook


def try_webhook(tenant_id: UUID, webhook_id: UUID | None, *, by: UUID | None) -> UUID:
    """Send it a test, now; the id of the delivery, whose try says what came of it. Waits for the endpoint,
    outside any transaction. Raises NotFound, WebhookOff."""
    with tenant_transaction(tenant_id):
        webhook, now = _get_enabled_webhook(webhook_id), database_now()
        made = WebhookMessage(tenant_id=tenant_id, kind=TEST, at=now)
        made.subject = f"test:{made.id}"
        made.body = encode_event_message(TEST, now, {"webhook": str(webhook.id), "name": webhook.name})
        made.save(force_insert=True)
        delivery = WebhookDelivery.objects.create(
            tenant_id=tenant_id, webhook=webhook, message=made, next_at=now, created_at=now
        )
        _audit_webhook_change(webhook, "webhook.test", {}, {"message": str(made.id)}, by, "")
    deliver_now(tenant_id, delivery.id)
    return delivery.id


def replay_delivery(
    tenant_id: UUID, webhook_id: UUID | None, delivery_id: UUID | None, *, by: UUID | None
) -> UUID:
    """Send a message again under its own id, now, and as often as a new one if that fails. Waits for the
    endpoint, outside any transaction. Raises NotFound, WebhookOff."""
    with tenant_transaction(tenant_id):
        webhook = _get_enabled_webhook(webhook_id)
        delivery = delivery_of(webhook, delivery_id)
        again = WebhookDelivery.objects.filter(id=delivery.id).update(
            state="waiting", tries=0, next_at=database_now(), done_at=None
        )
        if not again:
            # It was forgotten between the look and this.
            raise NotFound
        before = {"state": delivery.state, "attempts": delivery.attempts}
        _audit_webhook_change(
            webhook, "webhook.replay", before, {"message": str(delivery.message_id)}, by, ""
        )
    deliver_now(tenant_id, delivery.id)
    return delivery.id


def _get_enabled_webhook(webhook_id: UUID | None) -> Webhook:
    """It, if it is on. Raises NotFound, WebhookOff."""
    webhook = webhook_of(webhook_id)
    if webhook.off_at is not None:
        raise WebhookOff(name=webhook.name)
    return webhook


def _resolve_endpoint_origin(tenant_id: UUID, url: str) -> str:
    """The origin of an address that may be reached. Raises InvalidInput, EgressRefused."""
    try:
        target = target_of(url)
    except EgressRefused as error:
        raise _build_input_error("/url", error.data["detail"]) from error
    with tenant_transaction(tenant_id):
        leave = leave_for(target.origin)
    admit_endpoint(target, leave)
    return look_before_saving(url, leave).origin


def _check_webhook_fields(name: str, events: tuple[str, ...]) -> None:
    if not name.strip() or len(name) > 80:
        raise _build_input_error("/name", "1 to 80 characters.")
    unknown = [one for one in events if one not in KINDS]
    if unknown or not events:
        raise _build_input_error("/events", f"At least one of: {', '.join(KINDS)}.")


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": "not-allowed", "detail": detail}])


def _audit_webhook_change(
    webhook: Webhook,
    verb: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
    by: UUID | None,
    reason: str,
) -> None:
    place = f"webhook:{webhook.id}"
    write_audit_entry(
        webhook.tenant_id, by, verb=verb, object=place, before=before, after=after, reason=reason
    )

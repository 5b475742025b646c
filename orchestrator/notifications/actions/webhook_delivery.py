"""Delivering messages to endpoints: at least once, under one id, later and later (R-API-6, R-BUDGET-10).

A delivery is claimed for as long as a try may take, sent outside any transaction, and its try written down.
After a process that dies in between it is sent again under the same id: twice rather than never.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import F

from orchestrator.core.notifications.delivery_policy import PATIENCE, verdict_of, wait_after
from orchestrator.notifications.actions.webhook_disabled_mail import tell_off
from orchestrator.notifications.gateways.webhook_sender import AttemptResult, OutgoingMessage, send_webhook
from orchestrator.notifications.queries import sending_of
from tenancy.actions import write_audit_entry
from tenancy.core.errors import SecretUnusable
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Webhook, WebhookAttempt, WebhookDelivery

HOUSES: Final = 64
AT_ONCE: Final = 8
ROUNDS: Final = 5
# Longer than any try takes: nobody else claims a delivery that is on its way.
CLAIM: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """A delivery in hand: its try's number, and what to send or why that cannot be."""

    tenant: UUID
    delivery: UUID
    number: int
    at: datetime
    sending: OutgoingMessage | None
    fault: str = ""


def houses_due() -> list[UUID]:
    """The tenants with a delivery or a notice that is due, the longest waiting first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenants_with_webhooks(%s)", (HOUSES,))
        return [row[0] for row in cursor.fetchall()]


def deliver_due() -> int:
    """Send what is due in every house; how many tries were made. Each house has the same small share of a
    round, and a slow endpoint holds up a round for one try's deadline at most."""
    made = 0
    for _ in range(ROUNDS):
        houses = houses_due()
        for house in houses:
            tell_off(house)
        claimed = [one for house in houses for one in claim_of(house)]
        if not claimed:
            break
        _send_claimed_deliveries(claimed)
        made += len(claimed)
    return made


def deliver_now(tenant_id: UUID, only: UUID | None = None) -> int:
    """Send what is due in one house, a round of it, or the one delivery asked for, unless somebody else has
    it already; how many tries were made."""
    claimed = claim_of(tenant_id, only)
    _send_claimed_deliveries(claimed)
    return len(claimed)


def claim_of(tenant_id: UUID, only: UUID | None = None) -> list[ClaimedDelivery]:
    """Take deliveries of a tenant that are due, or the one asked for, for this sender."""
    with tenant_transaction(tenant_id):
        now = database_now()
        due = WebhookDelivery.objects.select_related("webhook", "message").filter(
            state="waiting", next_at__lte=now, webhook__off_at=None, webhook__removed_at=None
        )
        if only is not None:
            due = due.filter(id=only)
        rows = list(due.order_by("next_at", "id")[:AT_ONCE])
        return [_build_claimed_delivery(row, now) for row in rows if _claim_delivery(row, now)]


def _claim_delivery(row: WebhookDelivery, now: datetime) -> bool:
    same = WebhookDelivery.objects.filter(id=row.id, state="waiting", attempts=row.attempts)
    return bool(same.update(attempts=F("attempts") + 1, tries=F("tries") + 1, next_at=now + CLAIM))


def _build_claimed_delivery(row: WebhookDelivery, now: datetime) -> ClaimedDelivery:
    sending, fault = None, ""
    try:
        sending = sending_of(row, now)
    except SecretUnusable as error:
        fault = str(error)
    return ClaimedDelivery(
        tenant=row.tenant_id, delivery=row.id, number=row.attempts + 1, at=now, sending=sending, fault=fault
    )


def _send_claimed_deliveries(claimed: Sequence[ClaimedDelivery]) -> None:
    """Send them side by side and write down each try."""
    if not claimed:
        return
    for one, sent in zip(claimed, asyncio.run(_all_sent(claimed)), strict=True):
        note_try(one, sent)


async def _all_sent(claimed: Sequence[ClaimedDelivery]) -> list[AttemptResult]:
    return await asyncio.gather(*(_send_claimed_delivery(one) for one in claimed))


async def _send_claimed_delivery(one: ClaimedDelivery) -> AttemptResult:
    if one.sending is None:
        return AttemptResult(status=None, error=one.fault[:300])
    return await send_webhook(one.sending)


def note_try(one: ClaimedDelivery, sent: AttemptResult) -> None:
    """Write down a try and what follows from it. Outermost verb: owns the transaction."""
    with tenant_transaction(one.tenant):
        WebhookAttempt.objects.create(
            tenant_id=one.tenant, delivery_id=one.delivery, number=one.number, at=one.at, error=sent.error,
            milliseconds=sent.milliseconds, status=sent.status, length=sent.length,
        )  # fmt: skip
        now = database_now()
        verdict = verdict_of(sent.status)
        row = WebhookDelivery.objects.select_related("webhook").select_for_update(of=("self",)).get(
            id=one.delivery
        )  # fmt: skip
        if row.state != "waiting":
            # Removed, or told delivered by a later try whose answer came sooner.
            return
        if verdict == "delivered":
            WebhookDelivery.objects.filter(id=row.id).update(state="delivered", done_at=now)
            Webhook.objects.filter(id=row.webhook_id).update(failing_since=None)
        elif row.attempts == one.number:
            _record_failed_try(row, sent, verdict == "gone", now)


def _record_failed_try(row: WebhookDelivery, sent: AttemptResult, gone: bool, now: datetime) -> None:
    webhook = row.webhook
    since = webhook.failing_since or now
    wait = None if gone else wait_after(row.tries, row.id, sent.wish)
    if wait is None:
        WebhookDelivery.objects.filter(id=row.id).update(state="failed", done_at=now)
    else:
        WebhookDelivery.objects.filter(id=row.id).update(next_at=now + wait)
    Webhook.objects.filter(id=webhook.id, failing_since=None).update(failing_since=now)
    if gone:
        _turn_off(webhook, "It answered 410: it is gone for good.", now)
    elif wait is None and now - since >= PATIENCE:
        what = sent.error or f"it answered {sent.status}"
        _turn_off(
            webhook, f"Nothing has got through for {(now - since).days} days; at last: {what}"[:300], now
        )


def _turn_off(webhook: Webhook, why: str, now: datetime) -> None:
    """No more of it, and its administrators are told. Once, whoever sees it first."""
    if Webhook.objects.filter(id=webhook.id, off_at=None, removed_at=None).update(
        off_at=now, off_why=why, tell_at=now
    ):
        write_audit_entry(
            webhook.tenant_id, None, verb="webhook.off", object=f"webhook:{webhook.id}",
            before={"failing_since": webhook.failing_since.isoformat() if webhook.failing_since else None},
            after={"off": why},
        )  # fmt: skip

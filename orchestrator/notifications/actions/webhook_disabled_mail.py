"""Telling administrators by letter that an endpoint was turned off (R-API-6, R-BUDGET-10).

The endpoint's row is its own outbox: claimed by moving the time of its telling ahead, sent outside any
transaction, then marked.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from orchestrator.notifications.gateways.webhook_mail import OffLetter, send_off_letter
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Person, Tenant, Webhook

AGAIN: Final = timedelta(minutes=15)
# After that the page alone says it.
LONGEST: Final = timedelta(days=3)
log = structlog.stdlib.get_logger(__name__)


def tell_off(tenant_id: UUID) -> int:
    """Send the letters about endpoints that were turned off; how many endpoints they told of."""
    return sum(_send_disabled_mails(tenant_id, webhook) for webhook in _claim_disabled_webhooks(tenant_id))


def _claim_disabled_webhooks(tenant_id: UUID) -> list[Webhook]:
    with tenant_transaction(tenant_id):
        now = database_now()
        due = Webhook.objects.filter(told_at=None, tell_at__lte=now, removed_at=None).exclude(off_at=None)
        return [
            one for one in due.order_by("tell_at", "id")
            if Webhook.objects.filter(id=one.id, tell_at=one.tell_at).update(tell_at=now + AGAIN)
        ]  # fmt: skip


def _send_disabled_mails(tenant_id: UUID, webhook: Webhook) -> bool:
    letters = _build_disabled_mails(tenant_id, webhook)
    try:
        for letter in letters:
            send_off_letter(letter)
    except Exception as error:  # noqa: BLE001 - every mail back end and socket has its own; all are tried again
        log.warning("letter.unsent", webhook=str(webhook.id), error=type(error).__name__)
        return False
    with tenant_transaction(tenant_id):
        Webhook.objects.filter(id=webhook.id, off_at=webhook.off_at).update(told_at=database_now())
    return True


def _build_disabled_mails(tenant_id: UUID, webhook: Webhook) -> list[OffLetter]:
    """One for each administrator; none once it is too late to be news."""
    with tenant_transaction(tenant_id):
        if webhook.off_at is None or database_now() - webhook.off_at > LONGEST:
            return []
        house = Tenant.objects.get(id=tenant_id)
        people = Person.objects.filter(
            is_active=True, memberships__tenant=tenant_id, memberships__role=Role.ADMIN
        ).order_by("id")
        return [
            _build_disabled_mail(webhook, int(webhook.off_at.timestamp()), house.name, person)
            for person in people
        ]


def _build_disabled_mail(webhook: Webhook, when: int, house: str, person: Person) -> OffLetter:
    return OffLetter(
        id=f"{webhook.id}.{person.id}.{when}", tenant=house, webhook=webhook.id, name=webhook.name,
        url=webhook.url, why=webhook.off_why, address=person.email,
    )  # fmt: skip

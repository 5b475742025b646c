"""How long what was sent to endpoints is kept, and its end (R-API-6, X7)."""

from typing import Final
from uuid import UUID

import structlog
from django.db import DatabaseError

from orchestrator.core.notifications.delivery_policy import FEWEST_DAYS, MOST_DAYS
from orchestrator.notifications.queries import KeepingNow, keeping_now
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, take_advisory_lock, tenant_transaction
from tenancy.models import WebhookKeeping
from tenancy.queries import all_tenants

A_BATCH: Final = 500
log = structlog.stdlib.get_logger(__name__)


def keep_log(tenant_id: UUID, days: int, *, expected: int | None, by: UUID | None, reason: str) -> KeepingNow:
    """Keep what was sent for so many days, counted from when it was taken or given up. Outermost verb: owns
    the transaction. `expected` is the version that was looked at; the same again changes nothing. Raises
    InvalidInput, Stale."""
    if not FEWEST_DAYS <= days <= MOST_DAYS:
        raise _build_input_error("/days", f"{FEWEST_DAYS} to {MOST_DAYS} days.")
    if not reason.strip():
        raise _build_input_error("/reason", "Say why.")
    with tenant_transaction(tenant_id):
        _lock_webhook_log(tenant_id)
        before = keeping_now()
        if expected is not None and expected != before.version:
            raise Stale
        if before.version and before.days == days:
            return before
        WebhookKeeping.objects.create(
            tenant_id=tenant_id, version=before.version + 1, days=days, reason=reason[:500], by=by,
            at=database_now(),
        )  # fmt: skip
        write_audit_entry(
            tenant_id, by, verb="webhook.keep", object="webhook:log", before={"days": before.days},
            after={"days": days}, reason=reason,
        )  # fmt: skip
        return keeping_now()


def forget_log(tenant_id: UUID) -> int:
    """Remove what was taken or given up so long ago, a batch of it at most, by the database's time; how many
    deliveries. What still waits stays, whatever its age. Outermost verb: owns the transaction."""
    with tenant_transaction(tenant_id):
        # Of two who take the last deliveries of one message each, neither would see that it is the last.
        _lock_webhook_log(tenant_id)
        cursor = raw_cursor()
        cursor.execute("SELECT forget_webhooks(%s)", (A_BATCH,))
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def forget_logs() -> int:
    """Remove what is old in every house, batch by batch; how many deliveries. A house where that fails holds
    up no other."""
    return sum(_forget_all(tenant_id) for tenant_id in all_tenants())


def _forget_all(tenant_id: UUID) -> int:
    gone = 0
    try:
        while batch := forget_log(tenant_id):
            gone += batch
    except DatabaseError as error:
        log.warning("webhooks.unforgotten", tenant=str(tenant_id), error=type(error).__name__)
    return gone


def _lock_webhook_log(tenant_id: UUID) -> None:
    take_advisory_lock(f"webhook-log:{tenant_id}")


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": "not-allowed", "detail": detail}])

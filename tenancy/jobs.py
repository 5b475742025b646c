"""Celery's messages of tenancy: housekeeping and letters by the clock."""

from typing import Any

from celery import shared_task

from tenancy.actions.sign_in import forget_old_sign_ins
from tenancy.notifications.notices import send_notices
from tenancy.queries import all_tenants
from tenancy.rest.idempotency import forget_expired


@shared_task(name="tenancy.forget_answers", ignore_result=True)
def forget_answers() -> None:
    """Drop the answers to Idempotency-Keys that are past their life, tenant by tenant."""
    for tenant_id in all_tenants():
        while forget_expired(tenant_id):
            pass


@shared_task(name="tenancy.send_notices", ignore_result=True)
def send_due_notices() -> None:
    """Send the letters about notices that are due."""
    send_notices()


@shared_task(name="tenancy.forget_sign_ins", ignore_result=True)
def forget_sign_ins() -> None:
    """Delete sessions that have ended, tries to sign in that are old, and browsers that nobody uses."""
    forget_old_sign_ins()


BEAT: dict[str, dict[str, Any]] = {
    "forget-answers": {"task": "tenancy.forget_answers", "schedule": 3_600.0, "options": {"expires": 3_000}},
    "forget-sign-ins": {
        "task": "tenancy.forget_sign_ins",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "send-notices": {"task": "tenancy.send_notices", "schedule": 15.0, "options": {"expires": 15}},
}

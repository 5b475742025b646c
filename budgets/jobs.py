"""Celery's messages of budgets: letters, and figures that drift, by the clock."""

from typing import Any

from celery import shared_task

from budgets.actions.alert_outbox import send_letters
from budgets.actions.usage_drift import flag_drifts


@shared_task(name="budgets.send_letters", ignore_result=True)
def send_due_letters() -> None:
    """Send the letters about alerts that are due."""
    send_letters()


@shared_task(name="budgets.flag_drifts", ignore_result=True)
def flag_what_drifts() -> None:
    """Flag figures of ended runs that drift."""
    flag_drifts()


BEAT: dict[str, dict[str, Any]] = {
    "send-letters": {"task": "budgets.send_letters", "schedule": 15.0, "options": {"expires": 15}},
    "flag-drifts": {"task": "budgets.flag_drifts", "schedule": 900.0, "options": {"expires": 900}},
}

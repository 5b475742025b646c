"""Celery's messages of budgets: letters by the clock."""

from typing import Any

from celery import shared_task

from budgets.actions.letters import send_letters


@shared_task(name="budgets.send_letters", ignore_result=True)
def send_due_letters() -> None:
    """Send the letters about alerts that are due."""
    send_letters()


BEAT: dict[str, dict[str, Any]] = {
    "send-letters": {"task": "budgets.send_letters", "schedule": 15.0, "options": {"expires": 15}},
}

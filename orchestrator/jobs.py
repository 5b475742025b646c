"""Celery's messages to workers: each loads by id and makes one call. A lost one loses nothing (R-SESS-1)."""

from typing import Any
from uuid import UUID

from celery import shared_task
from celery.exceptions import Reject
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down

from orchestrator.commit.approval_timers import take_words_of
from orchestrator.notifications.actions.webhook_delivery import deliver_due
from orchestrator.notifications.actions.webhook_retention import forget_logs
from orchestrator.worker.process import this_process
from tenancy.celery_receivers import ends_process_on_error
from tenancy.db.process_lock import hold_process_lock


@shared_task(name="orchestrator.advance_run", ignore_result=True)
def advance_run(*, run_id: str) -> None:
    """Drive a run."""
    _check_not_stopping()
    this_process().worker.advance(UUID(run_id))


@shared_task(name="orchestrator.take_turn", ignore_result=True)
def take_turn(*, tenant: str = "") -> None:
    """Drive what is ready, one run after another, each the one whose turn it is (R-BUDGET-11). `tenant`:
    whose run was said to be ready; a message from before an update does not say."""
    _check_not_stopping()
    this_process().turns.take(UUID(tenant) if tenant else None)


def _check_not_stopping() -> None:
    """Put the message back for another worker where this one is to stop: dropped, it would leave the run to
    the next sweep. Raises Reject."""
    if this_process().worker.stopping:
        raise Reject("this worker is to stop", requeue=True)


@shared_task(name="orchestrator.take_effect", ignore_result=True)
def take_effect(*, run_id: str) -> None:
    """Let a yes take effect that could be taken back until now."""
    take_words_of(UUID(run_id))


@shared_task(name="orchestrator.learn_from", ignore_result=True)
def learn_from_run(*, run_id: str, tenant: str = "", workflow: str = "") -> None:
    """Let a run that has ended be learnt from. A message from before an update names neither."""
    this_process().learner.tell(UUID(run_id), tenant=UUID(tenant) if tenant else None, workflow=workflow)


@shared_task(name="orchestrator.send_webhooks", ignore_result=True)
def send_webhooks() -> None:
    """Send the messages to endpoints that are due."""
    deliver_due()


@shared_task(name="orchestrator.forget_webhooks", ignore_result=True)
def forget_webhooks() -> None:
    """Remove what was sent to endpoints longer ago than it is kept."""
    forget_logs()


BEAT: dict[str, dict[str, Any]] = {
    "send-webhooks": {"task": "orchestrator.send_webhooks", "schedule": 5.0, "options": {"expires": 5}},
    "forget-webhooks": {
        "task": "orchestrator.forget_webhooks",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
}


@worker_init.connect
@ends_process_on_error
def a_worker_begins(**_: Any) -> None:
    """Hold the lock by which others learn that this process lives, and load what its first run needs."""
    hold_process_lock()
    this_process().warm_up()


@worker_ready.connect
@ends_process_on_error
def a_worker_is_ready(**_: Any) -> None:
    """Start the heartbeat and the sweep beside the threads that take jobs."""
    this_process().start()


@worker_shutting_down.connect
def a_worker_is_to_stop(**_: Any) -> None:
    """Hold every run in hand before its next effect and give it back (R-SESS-13)."""
    this_process().stop()


@worker_shutdown.connect
def a_worker_has_stopped(**_: Any) -> None:
    """No job is left: let go of everything."""
    this_process().end()

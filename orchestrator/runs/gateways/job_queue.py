"""Waking a worker by name. A hint: lose all of them and the sweep still finds each run (docs/ring.md).

`enqueue_run` names the run that somebody waits for: it is driven as soon as a worker is free.
`enqueue_ready` says that a run is ready and waits for nobody: whose turn it is, is decided when a worker
takes the message (R-BUDGET-11).
"""

import threading
from typing import Any
from uuid import UUID

import structlog
from celery import current_app

from orchestrator.outbound.gateways.counters import TALLY
from orchestrator.outbound.gateways.monotonic_clock import read_monotonic_clock

log = structlog.get_logger(__name__)
ADVANCE = "orchestrator.advance_run"
TURN = "orchestrator.take_turn"
LEARN = "orchestrator.learn_from"
TAKE = "orchestrator.take_effect"
TURNS = "turns"
# After a failure nobody waits for the broker again for this long: an accepted POST is never held by a dead
# one.
QUIET_SECONDS = 2.0
_lock = threading.Lock()
_quiet_until = 0.0


def enqueue_run(run_id: UUID, *, after: float = 0.0) -> bool:
    """Post the job that drives a run, to be taken after `after` seconds; whether it was posted.

    Never raises: a dead broker is counted and logged.
    """
    return _enqueue_job(ADVANCE, run_id, kwargs={"run_id": str(run_id)}, countdown=after or None)


def enqueue_ready(run_id: UUID, *, tenant: UUID) -> bool:
    """Say that a run of the tenant is ready for whichever worker has a turn to give; whether it was said.
    Never raises."""
    return _enqueue_job(TURN, run_id, queue=TURNS, kwargs={"tenant": str(tenant)})


def let_learn(run_id: UUID, *, tenant: UUID, workflow: str) -> bool:
    """Say that a run of this tenant's workflow has ended and can be learnt from; a lost word loses one
    observation. Never raises."""
    said = {"run_id": str(run_id), "tenant": str(tenant), "workflow": workflow}
    return _enqueue_job(LEARN, run_id, kwargs=said)


def take_later(run_id: UUID, *, after: float) -> bool:
    """Say that a yes to a request of this run takes effect after `after` seconds; the sweep finds it when
    this is lost. Never raises."""
    return _enqueue_job(TAKE, run_id, kwargs={"run_id": str(run_id)}, countdown=after)


def connect_broker() -> bool:
    """Connect to the broker, so that the first message does not wait for it; whether it answers. Never
    raises."""
    try:
        with current_app.producer_or_acquire() as producer:
            producer.connection.ensure_connection(max_retries=1, timeout=QUIET_SECONDS)
    except Exception as error:  # noqa: BLE001 - as in `_enqueue_job`
        log.warning("queue.unreachable", error=type(error).__name__)
        return False
    return True


def _enqueue_job(job: str, run_id: UUID, **how: Any) -> bool:
    if _is_backing_off():
        TALLY.add("queue", job, "dropped")
        return False
    try:
        current_app.send_task(job, ignore_result=True, retry=False, **how)
    except Exception as error:  # noqa: BLE001 - kombu, redis and the socket each have their own; the sweep repairs all
        _be_quiet()
        TALLY.add("queue", job, "failed")
        log.warning("queue.unreachable", run=str(run_id), error=type(error).__name__)
        return False
    TALLY.add("queue", job, "posted")
    return True


def _is_backing_off() -> bool:
    with _lock:
        return read_monotonic_clock() < _quiet_until


def _be_quiet() -> None:
    global _quiet_until  # noqa: PLW0603 - one process, one broker, one number
    with _lock:
        _quiet_until = read_monotonic_clock() + QUIET_SECONDS

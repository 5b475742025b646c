"""Waking a worker by name. A hint: lose all of them and the sweep still finds each run (docs/ring.md)."""

import threading
from uuid import UUID

import structlog
from celery import current_app

from orchestrator.gateways.clock import steady
from orchestrator.gateways.tally import TALLY

log = structlog.get_logger(__name__)
ADVANCE = "orchestrator.advance_run"
# After a failure nobody waits for the broker again for this long: an accepted POST is never held by a dead
# one.
QUIET_SECONDS = 2.0
_lock = threading.Lock()
_quiet_until = 0.0


def wake(run_id: UUID, *, after: float = 0.0) -> bool:
    """Post the job that drives a run, to be taken after `after` seconds; whether it was posted.

    Never raises: a dead broker is counted and logged.
    """
    if _quiet():
        TALLY.add("queue", ADVANCE, "dropped")
        return False
    try:
        current_app.send_task(
            ADVANCE, kwargs={"run_id": str(run_id)}, countdown=after or None, ignore_result=True, retry=False
        )
    except Exception as error:  # noqa: BLE001 - kombu, redis and the socket each have their own; the sweep repairs all
        _be_quiet()
        TALLY.add("queue", ADVANCE, "failed")
        log.warning("queue.unreachable", run=str(run_id), error=type(error).__name__)
        return False
    TALLY.add("queue", ADVANCE, "posted")
    return True


def _quiet() -> bool:
    with _lock:
        return steady() < _quiet_until


def _be_quiet() -> None:
    global _quiet_until  # noqa: PLW0603 - one process, one broker, one number
    with _lock:
        _quiet_until = steady() + QUIET_SECONDS

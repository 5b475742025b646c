"""Logs one structured line for each step of a run that an operator follows (docs/operations.md).

Every line has the fields `tenant`, `run`, `node` if there is one, `ms` and `action`. No line has content: no
arguments, answers, reasons or credentials.
"""

import logging
from datetime import timedelta
from enum import Enum
from typing import NamedTuple
from uuid import UUID

import structlog

log = structlog.get_logger(__name__)


class _Line(NamedTuple):
    event: str
    action: str
    level: int = logging.INFO


class Operation(Enum):
    """The steps that are logged: the line's event, its `action`, and its level."""

    RUN_CLAIMED = _Line("run.claimed", "claim")
    RUN_WAITING = _Line("run.waiting", "wait")
    RUN_FINISHED = _Line("run.finished", "finish")
    RUN_FAILED = _Line("run.failed", "fail", logging.WARNING)
    EFFECT_SENT = _Line("effect.sent", "send")
    DECISION_TAKEN = _Line("decision.taken", "decide")
    LEASE_LOST = _Line("lease.lost", "lose_lease", logging.WARNING)


def log_operation(
    operation: Operation, *, tenant: UUID, run: UUID, took: timedelta, node: str = "", **details: str | int
) -> None:
    """Log one line about a run. Only ids, names and codes belong in `details`."""
    line = operation.value
    where = {"node": node} if node else {}
    log.log(
        line.level,
        line.event,
        action=line.action,
        tenant=str(tenant),
        run=str(run),
        **where,
        ms=took // timedelta(milliseconds=1),
        **details,
    )

"""Receivers of Celery's signals that may end the process. Celery logs what a receiver raises, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import structlog

log = structlog.get_logger(__name__)


def ends_process_on_error(receiver: Callable[..., None]) -> Callable[..., None]:
    """Return a receiver that ends the process with status 1 when `receiver` raises."""

    @wraps(receiver)
    def receive_or_exit(**named: Any) -> None:
        try:
            receiver(**named)
        except Exception as error:
            log.critical("worker.refused", receiver=receiver.__name__, error=str(error), exc_info=error)
            raise SystemExit(1) from error

    return receive_or_exit

"""Logging: structlog over the standard library, with run ids bound by contextvars (R-TRACE-14)."""

from __future__ import annotations

import logging
import logging.config
import re
import sys
from typing import Any

import structlog

_PROBES = ("GET /readyz", "GET /livez")
# One-time credentials that an address may carry.
_CODES = (
    (re.compile(r"^(\S+ /account/[^?]*)\?.*", re.DOTALL), r"\1?…"),
    (re.compile(r"(/account/password/reset/key/)[^/?]+"), r"\1…"),
)


def drop_probes(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Drop successful health probes, which would flood the log. A failed probe is kept."""
    if event.get("request") in _PROBES and event.get("code", 200) == 200:
        raise structlog.DropEvent
    return event


def without_codes(
    _logger: Any, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Mask one-time credentials (a provider's code, a link's key) in request addresses (R-SEC-2)."""
    if isinstance(event.get("request"), str):
        for pattern, shown in _CODES:
            event["request"] = pattern.sub(shown, event["request"])
    return event


class OneLineRefusals(logging.Filter):
    """Logs a refused request in one line without a traceback, since it is the caller's fault (R-SEC-7).

    django-structlog writes that line at the end of the request and gets the reason from here. A request
    refused before or after it, such as one for a foreign host, keeps Django's own line.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written."""
        status = getattr(record, "status_code", 500)
        if not record.name.startswith(("django.request", "django.security")) or status >= 500:
            return True
        reason, record.exc_info, record.exc_text = record.exc_info, None, None
        if "request_id" in structlog.contextvars.get_contextvars():
            if reason is not None and reason[0] is not None:
                structlog.contextvars.bind_contextvars(refused=reason[0].__name__)
            return False
        # Without an exception the request has its line already.
        return reason is not None


def _build_shared_processors() -> list[structlog.typing.Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


# One list for the whole process: a logger keeps the list that it was first used with, so a second list would
# leave active loggers with the old one, where `structlog.testing.capture_logs` does not see them.
_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.stdlib.filter_by_level,
    drop_probes,
    without_codes,
    *_build_shared_processors(),
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]


def choose_log_renderer(style: str, *, tty: bool) -> structlog.typing.Processor:
    """Return the renderer: `console` for people, `json` for machines, `auto` by the terminal."""
    if style == "json":
        return structlog.processors.JSONRenderer()
    # The library's own exception formatter prints every local of every frame: that takes seconds each time,
    # and may expose secrets.
    return structlog.dev.ConsoleRenderer(
        colors=tty and style != "plain", pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
    )


def configure_logging(*, style: str, level: str) -> None:
    """Route structlog and the standard library into one stream on stderr.

    `style` is `auto`, `console` or `json`; `level` is a standard level's name.
    """
    render = choose_log_renderer(style, tty=sys.stderr.isatty())
    # Each beat, job and socket, several per second, is useful for debugging only.
    routine = level.upper() if level.upper() == "DEBUG" else "WARNING"
    tail: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        render,
    ]
    if style == "json":
        tail.insert(1, structlog.processors.format_exc_info)
    plan: dict[str, Any] = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "house": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": tail,
                "foreign_pre_chain": _build_shared_processors(),
            }
        },
        "filters": {"one_line": {"()": OneLineRefusals}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "house", "filters": ["one_line"]}
        },
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # Requests are logged once, by django-structlog, with their ids.
            "uvicorn.access": {"level": "WARNING"},
            "uvicorn.error": {"level": routine},
            "django_structlog": {"level": level.upper()},
            "django_structlog.celery": {"level": routine},
            "celery": {"level": routine},
            "kombu": {"level": routine},
            "httpx2": {"level": "WARNING"},
            "httpcore2": {"level": "WARNING"},
        },
    }
    logging.config.dictConfig(plan)
    structlog.configure(
        processors=_PROCESSORS,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )

"""Celery, which only delivers messages: JSON, late acknowledgement, no result backend, no chains.

Spec: docs/decisions/postgres-is-the-truth.md.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_init, worker_ready
from django.conf import settings

from tenancy.celery_receivers import ends_process_on_error

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

FLOORS = ("tenancy", "traces", "budgets", "approvals", "orchestrator")


def beat_schedule() -> dict[str, dict[str, Any]]:
    """Every app's `jobs.BEAT`, joined. Static: a schedule nobody audits must not change at run time."""
    found: dict[str, dict[str, Any]] = {}
    for floor in FLOORS:
        if find_spec(f"{floor}.jobs"):
            found |= getattr(import_module(f"{floor}.jobs"), "BEAT", {})
    return found


app = Celery("interlock")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(related_name="jobs")


@app.on_after_finalize.connect
def _join_schedules(sender: Celery, **_kwargs: Any) -> None:
    """Needs every app loaded, so it waits until Celery is complete."""
    sender.conf.beat_schedule = beat_schedule()


@setup_logging.connect
def _keep_the_house_s_log(**_kwargs: Any) -> None:
    """A receiver here stops Celery from replacing the root logger's handlers."""


@worker_init.connect
@ends_process_on_error
def _refuse_power(**_kwargs: Any) -> None:
    """End a worker whose database role could step round the guards, or whose database does not answer."""
    import_module("config.observability.checks").refuse_power()


@worker_init.connect
def _give_way(**_kwargs: Any) -> None:
    """Agents work behind the requests of people: before any thread is there, for each inherits it."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(own, settings.INTERLOCK_WORKER_NICENESS))


@worker_ready.connect
def _tell_prometheus(**_kwargs: Any) -> None:
    """A worker has no web server: where a port is given, its numbers are there."""
    if settings.INTERLOCK_METRICS_PORT is not None:
        serve = import_module("config.observability.metrics").start_metrics_server
        serve(settings.INTERLOCK_METRICS_HOST, settings.INTERLOCK_METRICS_PORT)


@worker_ready.connect
@beat_init.connect
def _say_ready(**_kwargs: Any) -> None:
    """Tell the supervisor by a file: remote control is off."""
    if path := os.environ.get("INTERLOCK_READY_FILE"):
        Path(path).touch()

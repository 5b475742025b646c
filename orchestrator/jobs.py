"""Celery's messages to workers: each loads by id and makes one call. A lost one loses nothing (R-SESS-1)."""

from uuid import UUID

from celery import shared_task

from orchestrator.runtime.process import this_process


@shared_task(name="orchestrator.advance_run", ignore_result=True)
def advance_run(*, run_id: str) -> None:
    """Drive a run."""
    this_process().worker.advance(UUID(run_id))

"""Where a run stands, as the envelope that every committed step sends (R-SESS-11)."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from orchestrator.core.state import State
from orchestrator.models import Run
from orchestrator.queries.runs import state_now
from orchestrator.runtime.recall import state_of
from tenancy.clock import database_now
from traces.core.progress import BudgetRemaining, Progress
from traces.models import Event
from traces.queries import recall


def progress_of(run: Run) -> Progress:
    """The envelope of the run's newest commit. Inside the tenant's context.

    Steps are actions observed and committed; how many there will be is unknown without a plan.
    """
    at = Event.objects.filter(run_id=run.id, seq=run.event_seq).values_list("at", flat=True).first()
    return _envelope(run, state_now(run.id), at or database_now())


def progress_at(run: Run, at: datetime) -> Progress | None:
    """The same for a row whose newest event was at `at`; None where the run has gone on since it was read."""
    found = recall(run.id)
    if found.snapshot_number + len(found.patches) != run.record_number:
        return None
    return _envelope(run, state_of(found.state, found.patches)[0], at)


def _envelope(run: Run, state: State, at: datetime) -> Progress:
    return Progress(
        session_id=str(run.id),
        progress_id=run.event_seq,
        emitted_at=at,
        current_step=run.position,
        completed_step_count=_committed(run.id),
        total_step_count=None,
        budget_remaining=BudgetRemaining(
            tokens=_whole(state.left("total_tokens")),
            tool_calls=_whole(state.left("tool_calls")),
            cost_cents=_whole(state.left("cost_usd"), 100),
            wall_clock_ms=_whole(state.left("wall_clock_seconds"), 1000),
        ),
        awaiting_gate=bool(state.gates),
    )


def _committed(run_id: UUID) -> int:
    kinds = ("fact_committed", "failure_committed")
    return Event.objects.filter(run_id=run_id, kind__in=kinds).values("at").distinct().count()


def _whole(amount: Decimal | None, scale: int = 1) -> int | None:
    return None if amount is None else int(amount * scale)

"""The progress of a run, as the envelope that every committed step sends (R-SESS-11)."""

from datetime import datetime
from decimal import Decimal
from threading import Lock
from typing import Final
from uuid import UUID

from orchestrator.core.domain.run_state import RunState
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.runs import state_now
from orchestrator.runs.queries.state_loader import state_of
from tenancy.db.clock import database_now
from traces.core.events.progress import BudgetRemaining, Progress
from traces.models import Event
from traces.queries import load_state_parts

KINDS: Final = ("fact_committed", "failure_committed")
MOST_KEPT: Final = 1_000
_COUNTED: Final[dict[UUID, tuple[int, int]]] = {}
"""Of a run that is followed: up to which event its steps were counted by this process, and how many."""
_KEEPING: Final = Lock()


def progress_of(run: Run) -> Progress:
    """Return the envelope of the run's newest commit. Call it inside the tenant's context.

    Steps are actions observed and committed; their total is unknown without a plan.
    """
    at = Event.objects.filter(run_id=run.id, seq=run.event_seq).values_list("at", flat=True).first()
    return _build_progress(run, state_now(run.id), at or database_now())


def progress_at(run: Run, at: datetime) -> Progress | None:
    """Return the envelope for a row whose newest event was at `at`.

    None where the run has moved on since the row was read.
    """
    found = load_state_parts(run.id)
    if found.snapshot_number + len(found.patches) != run.record_number:
        return None
    return _build_progress(run, state_of(found.state, found.patches)[0], at)


def _build_progress(run: Run, state: RunState, at: datetime) -> Progress:
    return Progress(
        session_id=str(run.id),
        progress_id=run.event_seq,
        emitted_at=at,
        current_step=run.position,
        completed_step_count=_count_committed_steps(run.id, run.event_seq),
        total_step_count=None,
        budget_remaining=BudgetRemaining(
            tokens=_to_whole_units(state.left("total_tokens")),
            tool_calls=_to_whole_units(state.left("tool_calls")),
            cost_cents=_to_whole_units(state.left("cost_usd"), 100),
            wall_clock_ms=_to_whole_units(state.left("wall_clock_seconds"), 1000),
        ),
        awaiting_gate=bool(state.gates),
    )


def _count_committed_steps(run_id: UUID, seq: int) -> int:
    """Count the committed steps; only events since the last count are read, because a trace only grows."""
    counted, steps = _COUNTED.get(run_id, (0, 0))
    if counted > seq:
        # The database was restored to an earlier state.
        counted, steps = 0, 0
    since = Event.objects.filter(run_id=run_id, seq__gt=counted, seq__lte=seq)
    if counted < seq:
        # The events of one commit have the same time, and a run's newest event ends a commit.
        steps += since.filter(kind__in=KINDS).values("at").distinct().count()
        _cache_step_count(run_id, seq, steps)
    return steps


def _cache_step_count(run_id: UUID, seq: int, steps: int) -> None:
    with _KEEPING:
        _COUNTED[run_id] = (seq, steps)
        while len(_COUNTED) > MOST_KEPT:
            del _COUNTED[next(iter(_COUNTED))]


def _to_whole_units(amount: Decimal | None, scale: int = 1) -> int | None:
    return None if amount is None else int(amount * scale)

"""The progress envelope sent after each committed step (R-SESS-11)."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class BudgetRemaining(BaseModel):
    """The remaining budget.

    The fields are tokens and calls, cost in whole cents (rounded down), and time in ms. None: no limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: int | None
    tool_calls: int | None
    cost_cents: int | None
    wall_clock_ms: int | None


class Progress(BaseModel):
    """Progress of a run.

    `session_id` is the run, `progress_id` the sequence of its newest event: a client that reconnects with
    this cursor misses nothing and sees nothing twice. `total_step_count` is None if it is unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    session_id: str
    progress_id: int
    emitted_at: datetime
    current_step: str
    completed_step_count: int
    total_step_count: int | None
    budget_remaining: BudgetRemaining
    awaiting_gate: bool

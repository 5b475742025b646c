"""Status and clock after a walk: both follow from the state, nobody sets them by hand (R-SESS-5)."""

from datetime import datetime

from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.domain.status_transitions import compute_transition_path
from orchestrator.core.workflow.node_protocol import clock_ms, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import RunResumed, RunSuspended, TraceEventBody
from traces.core.integrity.chain import TraceEntry

WAITING = (Status.AWAITING_GATE, Status.AWAITING_INPUT)


def status_of(state: RunState) -> Status:
    """The status a state is in."""
    if state.outcome is not None:
        return state.status
    if state.paused and not state.pending:
        return Status.PAUSED
    if any(gate.kind == "question" for gate in state.gates.values()):
        return Status.AWAITING_INPUT
    if state.gates:
        return Status.AWAITING_GATE
    return Status.IN_PROGRESS


def derive_status(
    before: RunState, state: RunState, at: datetime, usage: Amounts
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    """The state with status, clock and usage set, and what is to be said of a change. Raises IllegalMove."""
    status = status_of(state)
    compute_transition_path(before.status, status)
    working = status is Status.IN_PROGRESS and not (state.away is not None and state.away.rests)
    changed = state.evolve(
        status=status, clock_since=at if working else None, clock_ms=clock_ms(before, at), usage=usage
    )
    if status is before.status:
        return changed, ()
    return changed, _trace_status_change(before.status, status, state)


def _trace_status_change(before: Status, status: Status, state: RunState) -> tuple[TraceEntry, ...]:
    body: TraceEventBody
    if status in WAITING:
        body = RunSuspended(awaiting=status.value, reference=min(state.gates, default=""))
    elif before in (*WAITING, Status.PAUSED) and status is Status.IN_PROGRESS:
        body = RunResumed(cause=before.value)
    else:
        return ()
    return (trace_event(Phase.TERMINATION_CHECK, body),)


def wake_at(state: RunState, deadline: datetime | None) -> datetime | None:
    """When the sweep must look at the run again although nobody signals: a timer, a gate's end, the goal's
    deadline."""
    if state.outcome is not None or (state.held and not state.paused):
        return None
    times = [gate.expires_at for gate in state.gates.values()]
    # Whoever takes back what it did has passed its deadline already, or does not heed it.
    kept = deadline if state.unwinding is None else None
    times += [time for time in (state.timer, kept) if time is not None]
    return min(times, default=None)

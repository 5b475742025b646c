"""When an interrupt is due, and what a refused reservation becomes (R-GRAPH-5, R-BUDGET-6)."""

from decimal import Decimal

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_state import PendingInterrupt
from orchestrator.core.workflow.node_protocol import NodeContext, RefusedEffect, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, ReservationRefused
from traces.core.integrity.chain import TraceEntry

WALL_CLOCK = "wall_clock"
CODE_OF: dict[Interrupt, TerminalCode] = {
    Interrupt.CANCELLED: TerminalCode.USER_CANCEL,
    Interrupt.BUDGET_EXHAUSTED: TerminalCode.BUDGET_EXHAUSTED,
    Interrupt.TIMEOUT: TerminalCode.TIMEOUT,
    Interrupt.EXPIRED: TerminalCode.TIMEOUT,
    Interrupt.UNSAFE: TerminalCode.UNSAFE_DETECTION,
    Interrupt.PERMISSION_DENIED: TerminalCode.PERMISSION_DENIED,
    Interrupt.DEPENDENCY_UNAVAILABLE: TerminalCode.UNAVAILABLE_DEP,
    Interrupt.REPEATED_FAILURE: TerminalCode.REPEATED_FAILURE,
}


def find_due_interrupt(view: NodeContext) -> PendingInterrupt | None:
    """The interrupt that time or a bound has brought about, or None."""
    state = view.state
    deadline = view.manifest.goal.deadline
    # A run that is ending already takes back what it did whatever the hour.
    if deadline is not None and view.at >= deadline and state.unwinding is None:
        return PendingInterrupt(interrupt=Interrupt.EXPIRED, reason="deadline_passed")
    if state.frozen is not None or state.unwinding is not None:
        # It waits for people: only its deadline goes on.
        return None
    left = view.clock_left_ms()
    if left is not None and left <= 0:
        return PendingInterrupt(interrupt=Interrupt.TIMEOUT, reason=WALL_CLOCK)
    bound = state.limits.get("transitions")
    if bound is not None and state.version >= bound:
        return PendingInterrupt(interrupt=Interrupt.BUDGET_EXHAUSTED, reason="transitions")
    limit = view.graph.cycle_limits.get(state.position)
    if limit is not None and state.visits.get(state.position, 0) > limit:
        return PendingInterrupt(interrupt=Interrupt.REPEATED_FAILURE, reason="cycle_limit")
    return None


def interrupt_for(refused: RefusedEffect) -> PendingInterrupt:
    """Running out of time is a timeout; of anything else, an exhausted budget."""
    kind = Interrupt.TIMEOUT if refused.dimension == "wall_clock_seconds" else Interrupt.BUDGET_EXHAUSTED
    return PendingInterrupt(interrupt=kind, reason=refused.dimension)


def refusal_said(refused: RefusedEffect) -> tuple[TraceEntry, ...]:
    """The events of a refused reservation: the refusal and the budget gate's breaker (R-BUDGET-12)."""
    body = ReservationRefused(
        dimension=refused.dimension,
        limit=refused.limit,
        wanted=refused.wanted,
        left=refused.left,
        account=refused.account,
    )
    tripped = BreakerTripped(
        breaker="budget_gate", reason=refused.dimension, limit=refused.left, actual=refused.wanted
    )
    return (trace_event(Phase.TERMINATION_CHECK, body), trace_event(Phase.TERMINATION_CHECK, tripped))


def overdue_said(halting: PendingInterrupt, limit: Decimal | None) -> TraceEntry:
    """The wall clock's breaker."""
    return trace_event(
        Phase.TERMINATION_CHECK, BreakerTripped(breaker="wall_clock", reason=halting.reason, limit=limit)
    )

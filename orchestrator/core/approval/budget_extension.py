"""Budget extension: freeze a run with an exhausted budget and ask people for more.

A frozen run keeps its position and its state. Its clock stops, as for every run that waits for people. More
budget sends the run back into the node that could not continue; a rejection or an expired request takes the
postponed interrupt (R-BUDGET-6, R-BUDGET-7).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_CEILING, Decimal
from uuid import UUID

from approvals.core.packet import BudgetLine
from budgets.core.dimension import ABOUT, GAUGES, Dimension, Kind
from budgets.core.statistics.forecast import UNKNOWN
from orchestrator.core.accounting.effect_cost import ZERO, add_amounts
from orchestrator.core.accounting.remaining_estimate import estimate_remaining_usage
from orchestrator.core.approval.compensation_approval import decided_said
from orchestrator.core.approval.packets import budget_packet
from orchestrator.core.common.frozen_model import with_entry, without_keys
from orchestrator.core.domain.effects import AskApproval
from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_events import GateDecided, GateExpired
from orchestrator.core.domain.run_state import Gate, PendingInterrupt, RunState
from orchestrator.core.workflow.interrupts import WALL_CLOCK
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.canonical import compute_digest, format_decimal
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    ApprovalExpired,
    ApprovalRequested,
    ApprovalWithdrawn,
    BudgetExtended,
    DecisionRefused,
    ReservationRefused,
)
from traces.core.integrity.chain import TraceEntry

# No effect of a node has this ordinal, so a budget request is never mistaken for one of them.
ORDINAL = 98
CALL = "budget"
QUEUE = "budget"
CLOCK = Dimension.WALL_CLOCK_SECONDS.value
CENT = Decimal("0.01")
ENDS = (Interrupt.BUDGET_EXHAUSTED, Interrupt.TIMEOUT)


def should_request_budget(view: NodeContext, halting: PendingInterrupt) -> bool:
    """Return whether the run asks people for more budget instead of ending.

    It asks if the boundary says so, a bounded number of times, for one of the run's own limits that was
    reached while nothing was in flight. A limit of 0 forbids: no person could raise it. A gauge is compared
    at use and never used up, so it is not asked for either (R-BUDGET-16).

    A run about to make a call that was already checked is not frozen: the check would be outdated by then.
    """
    state, boundary = view.state, view.pins.boundary
    if boundary.on_exhaustion != "request" or halting.interrupt not in ENDS:
        return False
    if state.frozen is not None or state.interrupt is not None or state.pending or state.halting is not None:
        return False
    asked = state.counters.budget_requests < boundary.budget_requests
    name = dimension_of(halting)
    given = name not in GAUGES and bool(state.limits.get(name))
    return asked and given and view.node.kind != "invoke_tool"


def dimension_of(halting: PendingInterrupt) -> str:
    """Return the dimension that an exhausted budget names."""
    return CLOCK if halting.reason == WALL_CLOCK else halting.reason


def request_budget(view: NodeContext, halting: PendingInterrupt, said: tuple[TraceEntry, ...]) -> NodeResult:
    """Request more budget and wait."""
    state, boundary = view.state, view.pins.boundary
    expires = view.at + timedelta(seconds=boundary.gate_ttl_seconds)
    effect_id = view.effect_id(ORDINAL, state.counters.budget_requests + 1)
    queue = boundary.escalation_routes.get("budget", QUEUE)
    refused = dimension_of(halting)
    lines = budget_lines(view, refused, _extract_wanted_amounts(said))
    packet = budget_packet(
        view,
        lines,
        refused=refused,
        why=explain_budget_request(lines, refused),
        request=UUID(effect_id),
        queue=queue,
        expires_at=expires,
    )
    body, packet_digest = view.desk.put(packet), compute_digest("packet", packet)
    ask = AskApproval(
        id=effect_id, request=UUID(effect_id), request_kind="budget", call=CALL, packet=body,
        packet_digest=packet_digest, action_digest="", quorum=1, tool="", queue=queue, amount=None,
        has_amount=False, risk="read_only", expires_at=expires,
    )  # fmt: skip
    gate = Gate(call=CALL, kind="budget", packet_digest=packet_digest, action_digest="", expires_at=expires)
    requested = ApprovalRequested(
        request=str(ask.request), request_kind="budget", call=CALL, packet=body,
        packet_digest=packet_digest, quorum=1, queue=queue, expires_at=expires.isoformat(),
    )  # fmt: skip
    counters = state.counters.evolve(budget_requests=state.counters.budget_requests + 1)
    waiting = state.evolve(
        gates=with_entry(state.gates, str(ask.request), gate), frozen=halting, timer=None, held=False,
        counters=counters, away=None,
    )  # fmt: skip
    return NodeResult(
        state=waiting, said=(*said, trace_event(Phase.ESCALATION_CHECK, requested)), effects=(ask,)
    )


def budget_lines(view: NodeContext, refused: str, wanted: Mapping[str, Decimal]) -> tuple[BudgetLine, ...]:
    """Return each cumulative limit of the run, with the amount requested for the one that was reached."""
    lines = []
    rest = estimate_remaining_usage(view.graph, view.manifest, view.state)
    for name, limit in view.state.limits.items():
        about = ABOUT[Dimension(name)]
        if about.kind is Kind.GAUGE or (name == Dimension.TRANSITIONS.value and name != refused):
            continue
        left, interval = _compute_amount_left(view, name), rest.get(name, UNKNOWN)
        needed = max(wanted.get(name, ZERO), compute_minimum_amount(name)) if name == refused else None
        lines.append(
            BudgetLine(
                dimension=name,
                unit=about.unit,
                limit=limit,
                used=limit - left,
                left=left,
                needed=needed,
                asked=_suggest_amount(name, limit, left, needed, interval.upper),
                lower=interval.lower if interval is not UNKNOWN else None,
                upper=interval.upper,
            )
        )
    return tuple(lines)


def compute_minimum_amount(name: str) -> Decimal:
    """Return the least amount of a dimension that lets a run continue."""
    return CENT if name == Dimension.COST_USD.value else Decimal(1)


def _suggest_amount(
    name: str, limit: Decimal, left: Decimal, needed: Decimal | None, upper: Decimal | None
) -> Decimal:
    """Return the amount to request for one dimension.

    It is what the rest of the run may need beyond what is left, if that is known. Otherwise the limit that
    was reached is raised by half, and other limits by nothing. For the limit that was reached it is at
    least what the next effect lacks.
    """
    step = CENT if name == Dimension.COST_USD.value else Decimal(1)
    foreseen = ZERO if upper is None else upper - left
    if needed is None:
        return max(foreseen, ZERO).quantize(step, rounding=ROUND_CEILING)
    likely = limit / 2 if upper is None else foreseen
    return max(needed - left, likely, step).quantize(step, rounding=ROUND_CEILING)


def _compute_amount_left(view: NodeContext, name: str) -> Decimal:
    if name == CLOCK:
        return max(ZERO, Decimal(view.clock_left_ms() or 0) / 1000)
    if name == Dimension.TRANSITIONS.value:
        return max(ZERO, view.state.limits[name] - view.number)
    return max(ZERO, view.state.left(name) or ZERO)


def _extract_wanted_amounts(said: tuple[TraceEntry, ...]) -> dict[str, Decimal]:
    """Return the amounts that the refused effect wanted, as the refusal recorded them."""
    bodies = (word.body for word in said)
    return {body.dimension: body.wanted for body in bodies if isinstance(body, ReservationRefused)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetResolution:
    """A frozen run after the decision; `halting` is the postponed interrupt if nothing was granted."""

    state: RunState
    said: tuple[TraceEntry, ...]
    halting: PendingInterrupt | None


def resolve_budget_request(
    state: RunState, event: GateDecided | GateExpired, ceiling: Decimal | None = None
) -> BudgetResolution | None:
    """Apply the answer to a budget request; return None for an event about anything else.

    `ceiling` is the tenant's ceiling per run, set if an extension was found to exceed it. Such an extension
    grants nothing, and the run asks again.
    """
    gate = state.gates.get(event.request)
    if gate is None or gate.kind != "budget":
        return None
    open_again = state.evolve(gates=without_keys(state.gates, event.request), frozen=None)
    if isinstance(event, GateExpired):
        said = trace_event(Phase.ESCALATION_CHECK, ApprovalExpired(request=event.request))
        return BudgetResolution(state=open_again.evolve(expired=True), said=(said,), halting=state.frozen)
    told = (decided_said(event),)
    granted = {name: amount for name, amount in event.amounts.items() if name in state.limits}
    if event.decision != "extend" or not granted:
        return BudgetResolution(state=open_again, said=told, halting=state.frozen)
    cost = Dimension.COST_USD.value
    if ceiling is not None and cost in granted and state.limits[cost] + granted[cost] > ceiling:
        void = DecisionRefused(request=event.request, by=event.by, reason="over_ceiling")
        fewer = state.counters.evolve(budget_requests=state.counters.budget_requests - 1)
        again = open_again.evolve(counters=fewer)
        return BudgetResolution(
            state=again, said=(*told, trace_event(Phase.ESCALATION_CHECK, void)), halting=None
        )
    more = trace_event(Phase.BUDGET_ASSIGNMENT, BudgetExtended(amounts=granted, by=event.by))
    raised = open_again.evolve(limits=add_amounts(state.limits, granted))
    return BudgetResolution(state=raised, said=(*told, more), halting=None)


def looked_again(state: RunState, reason: str) -> tuple[RunState, tuple[TraceEntry, ...]] | None:
    """Return a run that was frozen for money, ready to enter its node again after its cost changed.

    If the corrected amount is still not enough, the run asks again with the current figures; that counts as
    the same request. Returns None for a run that is not frozen, or that is frozen for another dimension.
    """
    if state.frozen is None or dimension_of(state.frozen) != Dimension.COST_USD.value:
        return None
    open_now = [request for request, gate in sorted(state.gates.items()) if gate.kind == "budget"]
    counters = state.counters.evolve(budget_requests=state.counters.budget_requests - 1)
    again = state.evolve(
        gates=without_keys(state.gates, *open_now), frozen=None, held=True, counters=counters
    )
    said = tuple(
        trace_event(Phase.ESCALATION_CHECK, ApprovalWithdrawn(request=request, reason=reason))
        for request in open_now
    )
    return again, said


def explain_budget_request(lines: tuple[BudgetLine, ...], refused: str) -> str:
    """Explain in one sentence which limit was reached and what the next effect needs of it."""
    line = next(line for line in lines if line.dimension == refused)
    name = refused.replace("_", " ")
    return (
        f"The run has used {format_decimal(line.used)} of its {format_decimal(line.limit)} {name} "
        f"({line.unit}); what comes "
        f"next needs {format_decimal(line.needed or ZERO)}, and {format_decimal(line.left)} is left."
    )

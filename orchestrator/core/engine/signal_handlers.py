"""Handle run signals of people and the system: pause, cancel, stop, extend, tighten.

Answers to a run's own questions are not signals.
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from budgets.core.dimension import Dimension
from orchestrator.core.accounting.effect_cost import add_amounts
from orchestrator.core.accounting.price_correction import with_corrected_prices
from orchestrator.core.approval.budget_extension import looked_again
from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_events import (
    AnyEvent,
    BudgetExtended,
    CancelAsked,
    CostCorrected,
    GateDecided,
    GateExpired,
    LateAnswer,
    Paused,
    PolicyTightened,
    PriceCorrected,
    QuestionAnswered,
    Recovered,
    Resumed,
    StopAsked,
)
from orchestrator.core.domain.run_state import PendingInterrupt, RunState
from orchestrator.core.workflow.node_protocol import trace_event
from traces.core.events import trace_events as trace
from traces.core.events.phases import Phase
from traces.core.integrity.chain import TraceEntry

COST = Dimension.COST_USD.value


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalResult:
    """The effect of a signal on the state; `reenter` if the run was held before its node."""

    state: RunState
    said: tuple[TraceEntry, ...]
    reenter: bool = False


def trace_run_started() -> tuple[TraceEntry, ...]:
    """Trace that a worker started the run for the first time."""
    return (trace_event(Phase.GOAL_INTAKE, trace.RunStarted()),)


def handle_run_signal(state: RunState, event: AnyEvent) -> SignalResult | None:
    """Return the effect of a signal, or None for an event that the node must answer."""
    if isinstance(event, GateDecided | GateExpired | QuestionAnswered):
        return _moved_on(state, event)
    return _handle_signal(event, state)


def _moved_on(state: RunState, event: GateDecided | GateExpired | QuestionAnswered) -> SignalResult | None:
    if event.request in state.gates:
        return None
    by = getattr(event, "by", "")
    body = trace.DecisionRefused(request=event.request, by=by, reason="run_moved_on")
    return SignalResult(state=state, said=(trace_event(Phase.ESCALATION_CHECK, body),))


@singledispatch
def _handle_signal(event: Any, state: RunState) -> SignalResult | None:
    return None


@_handle_signal.register
def _(event: CancelAsked, state: RunState) -> SignalResult:
    halting = state.halting or PendingInterrupt(interrupt=Interrupt.CANCELLED, reason="cancelled")
    body = trace.CancelAsked(by=event.by, reason=event.reason)
    return SignalResult(
        state=state.evolve(halting=halting), said=(trace_event(Phase.ESCALATION_CHECK, body),)
    )


@_handle_signal.register
def _(event: StopAsked, state: RunState) -> SignalResult:
    halting = PendingInterrupt(
        interrupt=Interrupt.CANCELLED, reason=f"emergency_stop_{event.scope}", stop=True
    )
    body = trace.StopAsked(scope=event.scope, target=event.target, reason=event.reason)
    return SignalResult(
        state=state.evolve(halting=halting), said=(trace_event(Phase.ESCALATION_CHECK, body),)
    )


@_handle_signal.register
def _(event: Paused, state: RunState) -> SignalResult:
    body = trace.RunPaused(reason=event.reason, by=event.by)
    return SignalResult(state=state.evolve(paused=True), said=(trace_event(Phase.TERMINATION_CHECK, body),))


@_handle_signal.register
def _(event: Resumed, state: RunState) -> SignalResult:
    body = trace.RunResumed(cause=f"resumed by {event.by}")
    return SignalResult(
        state=state.evolve(paused=False),
        said=(trace_event(Phase.TERMINATION_CHECK, body),),
        reenter=state.held,
    )


@_handle_signal.register
def _(event: BudgetExtended, state: RunState) -> SignalResult:
    known = {name: amount for name, amount in event.amounts.items() if name in state.limits}
    body = trace.BudgetExtended(amounts=known, by=event.by)
    return SignalResult(
        state=state.evolve(limits=add_amounts(state.limits, known)),
        said=(trace_event(Phase.BUDGET_ASSIGNMENT, body),),
    )


@_handle_signal.register
def _(event: CostCorrected, state: RunState) -> SignalResult:
    corrected = add_amounts(state.usage, {COST: event.delta})
    body = trace.CostCorrected(
        effect=event.effect, delta=event.delta, price_version=event.price_version, by=event.by,
        reason=event.reason,
    )  # fmt: skip
    return _recheck_budget_request(
        state.evolve(usage=corrected), (trace_event(Phase.BUDGET_ASSIGNMENT, body),), event.price_version,
        more=event.more,
    )  # fmt: skip


@_handle_signal.register
def _(event: PriceCorrected, state: RunState) -> SignalResult:
    body = trace.PriceCorrected(
        subject=event.subject, was=event.was, price_version=event.price_version, by=event.by,
        reason=event.reason,
    )  # fmt: skip
    said = (trace_event(Phase.BUDGET_ASSIGNMENT, body),)
    return _recheck_budget_request(
        with_corrected_prices(state, event), said, event.price_version, more=event.more
    )


def _recheck_budget_request(
    state: RunState, said: tuple[TraceEntry, ...], version: str, *, more: bool
) -> SignalResult:
    """Let a run that is frozen for money check again after a price or cost correction.

    Only the last of several corrections does so, so that people are asked again at most once (R-BUDGET-15:
    blocks follow).
    """
    eased = None if more else looked_again(state, f"the cost was corrected at price {version}")
    if eased is None:
        return SignalResult(state=state, said=said)
    return SignalResult(state=eased[0], said=(*said, *eased[1]), reenter=not state.paused)


@_handle_signal.register
def _(event: PolicyTightened, state: RunState) -> SignalResult:
    tools = tuple(sorted({*state.stopped_tools, event.tool})) if event.disabled else state.stopped_tools
    body = trace.PolicyDecided(
        rule=f"tightened:{event.tool}", decision="deny", boundary="", detail=event.risk or "disabled"
    )
    return SignalResult(
        state=state.evolve(stopped_tools=tools), said=(trace_event(Phase.POLICY_CHECK, body),)
    )


@_handle_signal.register
def _(event: LateAnswer, state: RunState) -> SignalResult:
    body = trace.LateOutcome(effect=event.effect, status=event.status, observation=event.observation)
    return SignalResult(state=state, said=(trace_event(Phase.OBSERVATION_GROUNDING, body),))


@_handle_signal.register
def _(event: Recovered, state: RunState) -> SignalResult | None:
    if event.resolution != "repeated":
        return None
    body = trace.CallRecovered(effect=event.effect, resolution="repeated")
    return SignalResult(state=state, said=(trace_event(Phase.OBSERVATION_GROUNDING, body),))

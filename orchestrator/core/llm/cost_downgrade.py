"""The cost threshold: with 80 % of a run's cost spent, what is left goes to the cheaper model (R-BUDGET-5).

Everything here follows from the state alone: an extension that lifts the limit brings the usual model back.
"""

from decimal import Decimal

from budgets.core.dimension import Dimension
from orchestrator.core.accounting.effect_cost import ZERO
from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.llm.failover import base_profile
from orchestrator.core.workflow.node_protocol import trace_event
from traces.core.canonical import format_decimal
from traces.core.events.phases import Phase
from traces.core.events.trace_events import CostThreshold
from traces.core.integrity.chain import TraceEntry

THRESHOLD = Decimal("0.8")
COST = Dimension.COST_USD.value


def is_cost_threshold_passed(state: RunState) -> bool:
    """Whether the threshold is passed. A run without a limit, or with one of nothing, has none to pass."""
    limit = state.limits.get(COST)
    return bool(limit) and state.usage.get(COST, ZERO) >= THRESHOLD * (limit or ZERO)


def profile_in_force(pins: Pins, state: RunState, role: Role) -> ModelProfile:
    """Who plays `role` now: its profile or whoever took over from that one, or beyond the threshold that
    profile's cheaper one, where it has one that nothing speaks against. A prompt that does not fit its window
    goes to the usual one all the same (orchestrator/core/llm/model_call.py)."""
    usual = base_profile(pins, state, role)
    if (
        not is_cost_threshold_passed(state)
        or usual.cheaper is None
        or usual.cheaper in (*state.flagged, *state.stood_down)
    ):
        return usual
    return next((profile for profile in pins.profiles if profile.name == usual.cheaper), usual)


def trace_threshold_crossing(
    pins: Pins, state: RunState, role: Role, profile: ModelProfile
) -> tuple[TraceEntry, ...]:
    """What is said of passing the threshold, either way, once: at the call that `profile` is asked for."""
    passed = is_cost_threshold_passed(state)
    if passed == state.thrifty:
        return ()
    body = CostThreshold(
        passed=passed,
        used=state.usage.get(COST, ZERO),
        limit=state.limits[COST],
        usual=base_profile(pins, state, role).name,
        profile=profile.name,
    )
    return (trace_event(Phase.BUDGET_ASSIGNMENT, body),)


def format_cost_notice(state: RunState) -> str:
    """What the agent is told beyond the threshold; empty before it."""
    if not is_cost_threshold_passed(state):
        return ""
    left = max(ZERO, state.left(COST) or ZERO)
    return (
        f"80 % of this run's cost is spent, US$ {format_decimal(left)} is left. Come to an end: answer "
        f"from what is "
        "known, and ask for nothing that the goal does not need."
    )

"""The cost threshold: above 80 % of a run's cost limit, the cheaper model is used (R-BUDGET-5).

The decision depends on the state alone: an extension that raises the limit brings the usual model back.
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
    """Return whether the threshold is passed; never without a cost limit, or with a limit of 0."""
    limit = state.limits.get(COST)
    return bool(limit) and state.usage.get(COST, ZERO) >= THRESHOLD * (limit or ZERO)


def profile_in_force(pins: Pins, state: RunState, role: Role) -> ModelProfile:
    """Return the model profile that plays `role` now.

    It is the role's profile or its replacement. Beyond the threshold it is that profile's cheaper one,
    unless there is none, or it is flagged or itself replaced. A prompt that does not fit the cheaper
    model's window goes to the usual model all the same (orchestrator/core/llm/model_call.py).
    """
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
    """Return the trace entry when the threshold is crossed, in either direction, once.

    The entry is written at the call for which `profile` is used.
    """
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
    """Return the notice to the agent beyond the threshold; empty before it."""
    if not is_cost_threshold_passed(state):
        return ""
    left = max(ZERO, state.left(COST) or ZERO)
    return (
        f"80 % of this run's cost is spent, US$ {format_decimal(left)} is left. Come to an end: answer "
        f"from what is "
        "known, and ask for nothing that the goal does not need."
    )

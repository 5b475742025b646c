"""Settle the budget when an effect is over, and book the working time (R-BUDGET-1)."""

from datetime import datetime
from decimal import Decimal
from typing import TypeGuard

from orchestrator.core.accounting.effect_cost import ONE, ZERO, add_amounts, model_actual
from orchestrator.core.accounting.effect_pricing import find_called_tool, price_of_pending
from orchestrator.core.accounting.price_correction import COST, at_price, has_replaced_price
from orchestrator.core.common.frozen_model import without_keys
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import (
    LOOKED,
    AnyEvent,
    ModelFailed,
    ModelReplied,
    Recovered,
    ToolAnswered,
    ToolFailed,
)
from orchestrator.core.domain.run_state import PendingEffect, RunState
from orchestrator.core.workflow.node_protocol import Settlement, clock_ms, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, BudgetSettled
from traces.core.integrity.chain import TraceEntry

# Either nothing was sent, or the recipient rejected the request unread.
NOT_TAKEN = frozenset(
    {"circuit_open", "model_busy", "refused_by_wall", "no_key", "egress_refused", "unreachable",
     "unavailable", "rate_limited"}
)  # fmt: skip
CHANGES = frozenset({"side_effects", "granted_side_effects", "memory_writes"})
Outcome = ModelReplied | ModelFailed | ToolAnswered | ToolFailed | Recovered


def is_effect_outcome(event: AnyEvent) -> TypeGuard[Outcome]:
    """Return whether the event is the outcome of an effect. A repeated effect stays in flight."""
    if isinstance(event, Recovered):
        return event.resolution != "repeated"
    return isinstance(event, ModelReplied | ModelFailed | ToolAnswered | ToolFailed)


def settle_effect(
    manifest: Manifest, state: RunState, event: Outcome
) -> tuple[RunState, Settlement, tuple[TraceEntry, ...]]:
    """Take the effect out of flight, book its actual amounts and release the rest of its reservation."""
    pending = state.pending[event.effect]
    held = _compute_reserved_amounts(manifest, state, pending)
    actual, unknown = _compute_actual_amounts(manifest, pending, event, held)
    over = _compute_overrun(pending.reserve, actual)
    next_state = state.evolve(
        pending=without_keys(state.pending, event.effect), usage=add_amounts(state.usage, actual)
    )
    said: tuple[TraceEntry, ...] = (
        trace_event(
            Phase.BUDGET_ASSIGNMENT,
            BudgetSettled(effect=event.effect, amounts=actual, unknown=unknown, overrun=over),
        ),
    )
    # The provider does not know of a price that was corrected meanwhile.
    took = over if held is pending.reserve else {name: more for name, more in over.items() if name != COST}
    if took:
        next_state = next_state.evolve(flagged=tuple(dict.fromkeys((*state.flagged, pending.profile))))
        said += (trace_event(Phase.BUDGET_ASSIGNMENT, _build_overrun_trip(pending, took)),)
    settlement = Settlement(
        effect=event.effect, reserved=pending.reserve, actual=actual, unknown=unknown,
        price_version=price_of_pending(manifest.pins, state, pending),
    )  # fmt: skip
    return next_state, settlement, said


def _compute_reserved_amounts(manifest: Manifest, state: RunState, pending: PendingEffect) -> Amounts:
    """Return the reserved amounts, at the price in force if the pinned price was replaced since."""
    spec = find_called_tool(manifest.pins, state, pending)
    if not has_replaced_price(state, pending, "" if spec is None else spec.name):
        return pending.reserve
    price = _get_pinned_profile(manifest, pending).price if spec is None else spec.price_usd
    return at_price(pending.reserve, price)


def _compute_actual_amounts(
    manifest: Manifest, pending: PendingEffect, event: Outcome, held: Amounts
) -> tuple[Amounts, bool]:
    if isinstance(event, ModelReplied):
        return model_actual(_get_pinned_profile(manifest, pending), event.usage), False
    if isinstance(event, ToolAnswered):
        return held, False
    if isinstance(event, ModelFailed):
        return _failed_model(manifest, pending, event, held)
    if isinstance(event, ToolFailed):
        return (held if event.sent else _compute_unsent_amounts(held)), False
    if event.resolution == "abandoned":
        return _compute_abandoned_amounts(event, held), False
    return held, event.resolution != "found"


def _failed_model(
    manifest: Manifest, pending: PendingEffect, event: ModelFailed, held: Amounts
) -> tuple[Amounts, bool]:
    """Return the amounts of a failed model call, and whether they are unknown.

    Every call that the provider accepted counts as a turn. Tokens count as reported, or as none if nothing
    was sent; otherwise the reserved amounts count, marked as unknown.
    """
    if event.usage:
        return model_actual(_get_pinned_profile(manifest, pending), event.usage), False
    if event.error in ("timeout", "malformed", "cut_off", "server_error"):
        return held, True
    if event.error in NOT_TAKEN:
        return {}, False
    return {"model_turns": ONE}, False


def _compute_abandoned_amounts(event: Recovered, held: Amounts) -> Amounts:
    """Return the amounts of an abandoned call, which certainly changed nothing.

    A call that was looked up had been sent, and counts as a call that failed. Of a call that was never sent
    only the step counts: the next attempt reserves no step of its own.
    """
    if event.detail.startswith(LOOKED):
        return {name: amount for name, amount in held.items() if name not in CHANGES}
    return {name: amount for name, amount in held.items() if name == "steps"}


def _compute_unsent_amounts(reserve: Amounts) -> Amounts:
    """Return the amounts of a call that certainly never reached its tool: a call and a step, no effect."""
    return {name: amount for name, amount in reserve.items() if name in ("tool_calls", "steps")}


def _compute_overrun(reserved: Amounts, actual: Amounts) -> Amounts:
    return {
        name: amount - reserved.get(name, ZERO)
        for name, amount in actual.items()
        if amount > reserved.get(name, ZERO)
    }


def _build_overrun_trip(pending: PendingEffect, over: Amounts) -> BreakerTripped:
    """Build the flag on a profile whose provider took more than was reserved.

    The flag names the first exceeded dimension.
    """
    dimension, excess = next(iter(over.items()))
    reserved = pending.reserve.get(dimension, ZERO)
    return BreakerTripped(
        breaker="circuit", reason="overrun", subject=pending.profile, limit=reserved, actual=reserved + excess
    )


def _get_pinned_profile(manifest: Manifest, pending: PendingEffect) -> ModelProfile:
    return next(p for p in manifest.pins.profiles if p.name == pending.profile)


def wall_clock(before: RunState, usage: Amounts, at: datetime) -> tuple[Amounts, Settlement] | None:
    """Return the usage with the working time since the last commit, and the settlement that books it.

    Returns None if no time passed.
    """
    used = Decimal(clock_ms(before, at)) / 1000
    delta = used - before.usage.get("wall_clock_seconds", ZERO)
    if delta <= 0:
        return None
    amounts = {"wall_clock_seconds": delta}
    return add_amounts(usage, amounts), Settlement(effect="", reserved={}, actual=amounts)

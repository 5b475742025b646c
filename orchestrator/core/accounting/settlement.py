"""What comes off the budget when an effect is over, and the working clock (R-BUDGET-1)."""

from datetime import datetime
from decimal import Decimal
from typing import TypeGuard

from orchestrator.core.accounting.effect_cost import ONE, ZERO, add, model_actual
from orchestrator.core.accounting.effect_pricing import called, price_of_pending
from orchestrator.core.accounting.price_correction import COST, at_price, replaced
from orchestrator.core.common.frozen_model import without
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
from orchestrator.core.domain.run_state import Pending, State
from orchestrator.core.workflow.node_protocol import Settlement, clock_ms, say
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, BudgetSettled
from traces.core.integrity.chain import Said

# Runs admitted under an earlier core counted nothing of a call that surely did not happen, nor its step where
# it was made again.
ABSENT_SINCE = 10
# Those before this one counted a turn of a call that nobody took.
TAKEN_SINCE = 11
# Nothing was sent, or whoever was asked turned it away unread.
NOT_TAKEN = frozenset(
    {"circuit_open", "model_busy", "refused_by_wall", "no_key", "egress_refused", "unreachable",
     "unavailable", "rate_limited"}
)  # fmt: skip
CHANGES = frozenset({"side_effects", "granted_side_effects", "memory_writes"})
Outcome = ModelReplied | ModelFailed | ToolAnswered | ToolFailed | Recovered


def settles(event: AnyEvent) -> TypeGuard[Outcome]:
    """Whether the event is what became of an effect. (A repeated effect stays in flight.)"""
    if isinstance(event, Recovered):
        return event.resolution != "repeated"
    return isinstance(event, ModelReplied | ModelFailed | ToolAnswered | ToolFailed)


def settle(manifest: Manifest, state: State, event: Outcome) -> tuple[State, Settlement, tuple[Said, ...]]:
    """Take the effect out of flight: its actual amounts are used, the rest of its reservation is free
    again."""
    pending = state.pending[event.effect]
    held = _held(manifest, state, pending)
    actual, unknown = _actual(manifest, pending, event, held)
    over = _overrun(pending.reserve, actual)
    next_state = state.evolve(pending=without(state.pending, event.effect), usage=add(state.usage, actual))
    said: tuple[Said, ...] = (
        say(
            Phase.BUDGET_ASSIGNMENT,
            BudgetSettled(effect=event.effect, amounts=actual, unknown=unknown, overrun=over),
        ),
    )
    # Of a price that was corrected meanwhile the provider knows nothing.
    took = over if held is pending.reserve else {name: more for name, more in over.items() if name != COST}
    if took:
        next_state = next_state.evolve(flagged=tuple(dict.fromkeys((*state.flagged, pending.profile))))
        said += (say(Phase.BUDGET_ASSIGNMENT, _flagged(pending, took)),)
    settlement = Settlement(
        effect=event.effect, reserved=pending.reserve, actual=actual, unknown=unknown,
        price_version=price_of_pending(manifest.pins, state, pending),
    )  # fmt: skip
    return next_state, settlement, said


def _held(manifest: Manifest, state: State, pending: Pending) -> Amounts:
    """What was reserved; at the price in force where another replaced it since."""
    spec = called(manifest.pins, state, pending)
    if not replaced(state, pending, "" if spec is None else spec.name):
        return pending.reserve
    price = _profile(manifest, pending).price if spec is None else spec.price_usd
    return at_price(pending.reserve, price)


def _actual(manifest: Manifest, pending: Pending, event: Outcome, held: Amounts) -> tuple[Amounts, bool]:
    if isinstance(event, ModelReplied):
        return model_actual(_profile(manifest, pending), event.usage), False
    if isinstance(event, ToolAnswered):
        return held, False
    if isinstance(event, ModelFailed):
        return _failed_model(manifest, pending, event, held)
    if isinstance(event, ToolFailed):
        return (held if event.sent else _counted(held)), False
    if event.resolution == "abandoned":
        return _abandoned(manifest, event, held), False
    return held, event.resolution != "found"


def _failed_model(
    manifest: Manifest, pending: Pending, event: ModelFailed, held: Amounts
) -> tuple[Amounts, bool]:
    """A turn is counted of every call that was taken; tokens as reported, none when nothing was sent, else as
    reserved and unknown."""
    if event.usage:
        return model_actual(_profile(manifest, pending), event.usage), False
    if event.error in ("timeout", "malformed", "cut_off", "server_error"):
        return held, True
    if event.error in NOT_TAKEN and manifest.core_version >= TAKEN_SINCE:
        return {}, False
    return {"model_turns": ONE}, False


def _abandoned(manifest: Manifest, event: Recovered, held: Amounts) -> Amounts:
    """Of a call that surely changed nothing. What was looked for had been sent, and counts as a call that
    failed; of what nobody sent the step remains: the attempt after it reserves none of its own."""
    if manifest.core_version < ABSENT_SINCE:
        return {}
    if event.detail.startswith(LOOKED):
        return {name: amount for name, amount in held.items() if name not in CHANGES}
    return {name: amount for name, amount in held.items() if name == "steps"}


def _counted(reserve: Amounts) -> Amounts:
    """A call that surely never reached its tool counts as a call and a step, and as no effect."""
    return {name: amount for name, amount in reserve.items() if name in ("tool_calls", "steps")}


def _overrun(reserved: Amounts, actual: Amounts) -> Amounts:
    return {
        name: amount - reserved.get(name, ZERO)
        for name, amount in actual.items()
        if amount > reserved.get(name, ZERO)
    }


def _flagged(pending: Pending, over: Amounts) -> BreakerTripped:
    """The flag on a profile whose provider took more than was reserved: the first dimension of it."""
    dimension, excess = next(iter(over.items()))
    reserved = pending.reserve.get(dimension, ZERO)
    return BreakerTripped(
        breaker="circuit", reason="overrun", subject=pending.profile, limit=reserved, actual=reserved + excess
    )


def _profile(manifest: Manifest, pending: Pending) -> ModelProfile:
    return next(p for p in manifest.pins.profiles if p.name == pending.profile)


def wall_clock(before: State, usage: Amounts, at: datetime) -> tuple[Amounts, Settlement] | None:
    """The usage with the working time since the last commit, which books it; None where none passed."""
    used = Decimal(clock_ms(before, at)) / 1000
    delta = used - before.usage.get("wall_clock_seconds", ZERO)
    if delta <= 0:
        return None
    amounts = {"wall_clock_seconds": delta}
    return add(usage, amounts), Settlement(effect="", reserved={}, actual=amounts)

"""Record the changes that a run made, and reserve the budget to undo them (R-TOOL-15).

A change is recorded when its result is observed.
"""

from decimal import Decimal

from orchestrator.core.accounting.effect_cost import ZERO, add_amounts, call_reserve
from orchestrator.core.common.frozen_model import with_entry, without_keys
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_state import Call, RunState, SideEffect
from orchestrator.core.domain.tool_spec import Reversibility, ToolSpec
from orchestrator.core.workflow.node_protocol import NodeContext

# A compensating call counts under the action that it undoes: a run that may act may also undo.
COUNTED_WITH_THE_ACTION = ("side_effects", "granted_side_effects")


def is_tracked(spec: ToolSpec) -> bool:
    """Return whether a call of this tool is recorded: it is if the tool changes something."""
    return spec.reversibility is not Reversibility.PURE


def with_side_effect(view: NodeContext, state: RunState, call: Call, observation: str | None) -> RunState:
    """Return the state with a change that happened, and with budget reserved to undo it."""
    spec = view.pins.by_name[call.tool]
    if not is_tracked(spec) or call.arguments is None:
        return state
    room = {name: _at_most(state, name, amount) for name, amount in undo_room(view.pins, spec).items()}
    deed = SideEffect(tool=call.tool, arguments=call.arguments, observation=observation, room=room)
    return state.evolve(deeds=with_entry(state.deeds, call.id, deed), kept=add_amounts(state.kept, room))


def with_doubtful_effect(view: NodeContext, state: RunState, call: Call) -> RunState:
    """Return the state with a change that may or may not have happened."""
    spec = view.pins.by_name[call.tool]
    if not is_tracked(spec) or call.arguments is None:
        return state
    deed = SideEffect(tool=call.tool, arguments=call.arguments, standing="in_doubt")
    return state.evolve(deeds=with_entry(state.deeds, call.id, deed))


def with_reconciled_effect(view: NodeContext, state: RunState, call: Call, decision: str) -> RunState:
    """Return the state after a person decided on a change in doubt."""
    if call.id not in state.deeds:
        return state
    if decision == "happened":
        return with_side_effect(view, state, call, call.observation)
    if decision == "not_happened":
        return state.evolve(deeds=without_keys(state.deeds, call.id))
    return state


def undo_room(pins: Pins, spec: ToolSpec) -> Amounts:
    """Return what undoing one call of a tool costs: the compensating call and its read-back."""
    if spec.compensation is None:
        return {}
    undo = pins.by_name.get(spec.compensation.tool)
    if undo is None:
        return {}
    room = undo_reserve(undo)
    reader = undo.verifier.read_back if undo.verifier is not None else None
    if reader is not None and reader.tool in pins.by_name:
        room = add_amounts(room, call_reserve(pins.by_name[reader.tool], granted=False, step=False))
    return room


def undo_reserve(spec: ToolSpec) -> Amounts:
    """Return the worst case of one compensating call."""
    amounts = call_reserve(spec, granted=False, step=False)
    return {name: amount for name, amount in amounts.items() if name not in COUNTED_WITH_THE_ACTION}


def without_undo_reserve(state: RunState, deed: SideEffect) -> RunState:
    """Return the state with the undo reserve of a side effect released, to be spent on undoing it."""
    return state.evolve(kept=add_amounts(state.kept, {name: -amount for name, amount in deed.room.items()}))


def with_undo_reserves(pins: Pins, state: RunState) -> RunState:
    """Return the state with new undo reserves for every change that is still in force.

    The reserves follow the tool versions in force, which are among the pins, and are capped by what the
    limits leave.
    """
    kept = state.evolve(deeds={}, kept={})
    for key, deed in reversed(newest_first(state)):
        asked = undo_room(pins, pins.by_name[deed.tool]) if deed.standing == "done" else {}
        room = {name: _at_most(kept, name, amount) for name, amount in asked.items()}
        deeds = with_entry(kept.deeds, key, deed.evolve(room=room))
        kept = kept.evolve(deeds=deeds, kept=add_amounts(kept.kept, room))
    return kept


def newest_first(state: RunState) -> list[tuple[str, SideEffect]]:
    """Return the side effects in the reverse of the order in which they were requested."""
    return sorted(state.deeds.items(), key=lambda entry: int(entry[0][1:]), reverse=True)


def _at_most(state: RunState, name: str, amount: Decimal) -> Decimal:
    left = state.left(name)
    return amount if left is None else min(amount, max(left, ZERO))

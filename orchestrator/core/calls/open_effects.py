"""Open effects: changes that may have been made although no result confirms them (R-TOOL-9).

They are recorded by the requested action, across a whole line of retries, until a look-up, a person or the
same key settles them.
"""

from typing import Literal

from orchestrator.core.accounting import side_effects
from orchestrator.core.common.frozen_model import with_entry, without_keys
from orchestrator.core.domain.run_state import Call, OpenEffect, RunState, SideEffect
from orchestrator.core.workflow.node_protocol import NodeContext, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import EffectLeftOpen, EffectSettled
from traces.core.integrity.chain import TraceEntry

UNSURE = ("open", "in_doubt")
# Stored in place of an error: after the end of an earlier run it was learnt that the change was made.
HAPPENED = "happened"


def action_key(call: Call) -> str:
    """Return the key of one intended action: the tool with its canonical arguments."""
    return opened_key(call.tool, call.argument_digest or "")


def opened_key(tool: str, argument_digest: str) -> str:
    """Return the key under which an open effect is recorded."""
    return f"{tool}:{argument_digest}"


def open_of(state: RunState, call: Call) -> OpenEffect | None:
    """Return the earlier request of the same action whose outcome is open; None if there is none.

    A change that an earlier run made without knowing it counts for every call of its tool: the next request
    for it may be worded differently.
    """
    return state.opened.get(_key_of(state, call)) if state.opened else None


def _key_of(state: RunState, call: Call) -> str:
    """Return the key of the open effect that applies to a call."""
    key = action_key(call)
    if key in state.opened:
        return key
    made = (name for name, one in state.opened.items() if (one.tool, one.error) == (call.tool, HAPPENED))
    return min(made, default=key)


def looks_first(view: NodeContext, state: RunState, call: Call) -> bool:
    """Return whether another call's open effect is looked up before this one is sent."""
    before = open_of(state, call)
    return before is not None and before.call != call.id and view.pins.by_name[call.tool].lookup


def asks_first(view: NodeContext, call: Call) -> bool:
    """Return whether people must settle an earlier call before this one may be made.

    They must if the tool neither honours keys nor supports look-ups, or if the earlier call is known to
    have happened.
    """
    before, spec = open_of(view.state, call), view.pins.by_name.get(call.tool)
    if before is None or spec is None or not spec.is_mutating:
        return False
    if before.error == HAPPENED:
        # This holds for the same call too, if a retry begins just before it.
        return True
    return before.call != call.id and not (spec.honours_keys or spec.lookup)


def record_open_effect(
    view: NodeContext, state: RunState, call: Call, error: str
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    """Return the state with an effect that stays open, and its trace entries.

    The call becomes the newest request of that effect.
    """
    spec = view.pins.by_name[call.tool]
    if not spec.is_mutating:
        return state, ()
    effect = call.effect or ""
    opened = OpenEffect(call=call.id, tool=call.tool, effect=effect, key=call.key or "", error=error)
    before = open_of(state, call)
    # A change that an earlier run made now belongs to this call, or to none.
    older = (*UNSURE, "done") if before is not None and before.error == HAPPENED else UNSURE
    told = _without_older(state, call, older)
    told = told.evolve(
        opened=with_entry(without_keys(told.opened, _key_of(told, call)), action_key(call), opened)
    )
    if call.id not in told.deeds and call.arguments is not None and side_effects.is_tracked(spec):
        deed = SideEffect(
            tool=call.tool, arguments=call.arguments, observation=call.observation, standing="open"
        )
        told = told.evolve(deeds=with_entry(told.deeds, call.id, deed))
    body = EffectLeftOpen(call=call.id, effect=effect, tool=call.tool, key=call.key or "", error=error)
    return told, (trace_event(Phase.OBSERVATION_GROUNDING, body),)


def settle_open_effect(
    state: RunState, call: Call, by: Literal["done", "absent", "person"]
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    """Return the state in which the action of a call is no longer open, and its trace entries.

    The outcome applies to earlier requests of the same action as well.
    """
    before = open_of(state, call)
    if before is None:
        return state, ()
    closed = _without_older(state, call, (*UNSURE, "done"))
    if (deed := closed.deeds.get(call.id)) is not None and deed.standing == "open":
        closed = closed.evolve(deeds=without_keys(closed.deeds, call.id))
    closed = closed.evolve(opened=without_keys(closed.opened, _key_of(state, call)))
    body = EffectSettled(call=call.id, effect=before.effect, tool=call.tool, key=before.key, by=by)
    return closed, (trace_event(Phase.OBSERVATION_GROUNDING, body),)


def _without_older(state: RunState, call: Call, standings: tuple[str, ...]) -> RunState:
    """Return the state without the side effect of an earlier call of the same action.

    It is removed if its status is one of `standings`; its undo reserve is released.
    """
    before = open_of(state, call)
    if before is None or before.call == call.id:
        return state
    deed = state.deeds.get(before.call)
    if deed is None or deed.standing not in standings:
        return state
    return side_effects.without_undo_reserve(state, deed).evolve(deeds=without_keys(state.deeds, before.call))

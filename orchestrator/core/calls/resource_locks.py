"""Calls that write the same thing: one at a time, by the keys that their tools declare (G10).

Within a run calls that change something go one by one anyway. A key that names an argument, such as
`order:{order_id}`, holds across the tenant's runs: who finds it taken waits.
"""

from datetime import timedelta
from hashlib import sha256
from typing import Any

from orchestrator.core.domain.effects import SetTimer
from orchestrator.core.domain.run_state import Call, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import ConflictWaited

LONGEST = 200
WAIT = timedelta(seconds=1)
# No effect of a node has this ordinal: a wait is never taken for one of them.
ORDINAL = 97


def keys_of(view: NodeContext, spec: ToolSpec, call: Call) -> tuple[str, ...]:
    """The keys that this exact call holds across runs, each once, in order."""
    shared = [template for template in spec.conflict_keys if "{" in template]
    if not shared or not spec.is_mutating or call.arguments is None:
        return ()
    arguments = view.desk.json(call.arguments)
    return tuple(sorted({_fill_key_template(template, arguments) for template in shared}))


def _fill_key_template(template: str, arguments: Any) -> str:
    text = template
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        text = text.replace("{" + name + "}", str(value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 65]}:{sha256(text.encode()).hexdigest()}"


def find_busy_lock_key(view: NodeContext, spec: ToolSpec, call: Call) -> str | None:
    """The key of this call that another run holds now, or None."""
    busy = view.headroom.busy
    return next((key for key in keys_of(view, spec, call) if key in busy), None) if busy else None


def wait_for_resource_lock(view: NodeContext, state: RunState, call: Call, key: str) -> NodeResult:
    """Wait a moment before the call is looked at again. The run's clock goes on meanwhile, and bounds it."""
    timer = SetTimer(id=view.effect_id(ORDINAL, 0), due=view.at + WAIT)
    said = trace_event(Phase.TOOL_ELIGIBILITY, ConflictWaited(call=call.id, tool=call.tool, key=key))
    return NodeResult(state=state.evolve(timer=timer.due), said=(said,), effects=(timer,))

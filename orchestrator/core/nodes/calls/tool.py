"""tool: one fixed call, its arguments taken from inputs, facts, the draft or constants (tiers 1 to 4;
phase 8)."""

from typing import ClassVar

from orchestrator.core.approval.change_requests import asked_anew
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.run_state import Call
from orchestrator.core.workflow.goal_inputs import MISSING
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from orchestrator.core.workflow.value_sources import ToolCallConfig, value_of
from traces.core.canonical import canonical_outside
from traces.core.events.phases import Phase
from traces.core.events.trace_events import CallRequested


class FixedTool(PlainNode):
    kind: ClassVar[str] = "tool"
    outcomes: ClassVar[tuple[str, ...]] = ("requested", "missing_info")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.ACTION_SELECTION)
    artifact: ClassVar[str] = "proposed action"
    config: ClassVar[type[FrozenModel]] = ToolCallConfig

    def enter(self, view: NodeContext) -> NodeResult:
        """Assemble the arguments and queue the call; a value that is not there is missing information."""
        config: ToolCallConfig = view.node.config
        found = {name: value_of(view, source) for name, source in config.arguments.items()}
        missing = tuple(name for name, value in found.items() if value is MISSING)
        state = view.state
        if missing:
            asked = state.evolve(asked=missing, reason=f"missing:{','.join(missing)}")
            return NodeResult(state=asked, outcome="missing_info")
        number = state.counters.calls + 1
        raw = view.desk.put(canonical_outside(found))
        call = Call(id=f"c{number}", by=view.node.id, provider_id=f"c{number}", tool=config.tool, raw=raw)
        body = CallRequested(call=call.id, tool=call.tool, arguments=raw, ordinal=0, by="node")
        queued = state.evolve(queue=(call,), results=(), counters=state.counters.evolve(calls=number))
        anew = asked_anew(view, queued, call.by, (call.tool,))
        return NodeResult(state=anew, outcome="requested", said=(trace_event(Phase.ACTION_SELECTION, body),))


KIND = FixedTool()

"""invoke_tool: the checked calls become effects (phase 9). Entered only from check_tool; a grant goes with
its intent."""

from typing import ClassVar

from orchestrator.core.approval.reconciliation import ask_what_became
from orchestrator.core.calls.invocation import launch_call
from orchestrator.core.calls.open_effects import action_key, asks_first
from orchestrator.core.common.frozen_model import with_entry
from orchestrator.core.domain.effects import Effect, idempotency_key
from orchestrator.core.domain.run_state import Call, RunState
from orchestrator.core.nodes.acting.act import not_run
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped
from traces.core.integrity.chain import TraceEntry


class InvokeTool(PlainNode):
    kind: ClassVar[str] = "invoke_tool"
    outcomes: ClassVar[tuple[str, ...]] = ("dispatched", "circuit_open")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.TOOL_INVOCATION)
    artifact: ClassVar[str] = "tool call"

    def enter(self, view: NodeContext) -> NodeResult:
        """Ask for every call of the batch, unless the circuit of one is open."""
        open_circuits = [call for call in view.state.batch if call.tool in view.headroom.open_circuits]
        if open_circuits:
            return self._circuit_open(view, open_circuits[0])
        state: RunState = view.state
        if any(asks_first(view, call) for call in state.batch):
            # Whatever changes something goes alone.
            return ask_what_became(view, state.batch[0])._replace(outcome="dispatched")
        said: list[TraceEntry] = []
        effects: list[Effect] = []
        for ordinal, call in enumerate(view.state.batch):
            assert call.argument_digest is not None
            key = idempotency_key(
                view.manifest.line, call.tool, call.argument_digest, state.confirmed.get(action_key(call), 0)
            )
            state = state.evolve(
                repeats=with_entry(
                    state.repeats, action_key(call), state.repeats.get(action_key(call), 0) + 1
                )
            )
            started = launch_call(view, state, call.evolve(key=key, rung="attempted", attempt=1), ordinal)
            state = started.state
            said.extend(started.said)
            effects.extend(started.effects)
        return NodeResult(state=state, outcome="dispatched", said=tuple(said), effects=tuple(effects))

    def _circuit_open(self, view: NodeContext, blocked: Call) -> NodeResult:
        """Nothing was sent; every call of the batch gets its structured result."""
        results, said = [], []
        for call in view.state.batch:
            result, why = not_run(view, call, "circuit_open", f"{blocked.tool} is unavailable for the moment")
            results.append(result)
            said.append(why)
        tripped = BreakerTripped(breaker="circuit", reason="open", subject=blocked.tool)
        state = view.state.evolve(
            batch=(),
            results=(*view.state.results, *results),
            reason=f"circuit_open:{blocked.tool}",
            last_askers=tuple(call.by for call in view.state.batch),
        )
        said.append(trace_event(Phase.TOOL_INVOCATION, tripped))
        return NodeResult(state=state, outcome="circuit_open", said=tuple(said))


KIND = InvokeTool()

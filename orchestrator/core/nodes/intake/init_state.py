"""init_state: task state and budget vector stand (phases 4 and 6; 5 is skipped where the graph has no
plan)."""

from typing import ClassVar

from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BudgetAssigned, PhaseNoted, PhaseSkipped


class InitState(PlainNode):
    kind: ClassVar[str] = "init_state"
    outcomes: ClassVar[tuple[str, ...]] = ("ready", "failed")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.STATE_INIT)
    artifact: ClassVar[str] = "active task state"

    def enter(self, view: NodeContext) -> NodeResult:
        """Ready when the manifest binds this run, this graph and a budget; anything else must not go on."""
        manifest = view.manifest
        fault = ""
        if manifest.graph != view.graph.digest:
            fault = "graph_differs_from_manifest"
        elif not manifest.limits:
            fault = "no_budget"
        body = PhaseNoted(artifact=self.artifact, detail=fault, digest=manifest.pins_digest)
        if fault:
            state = view.state.evolve(reason=fault)
            return NodeResult(state=state, outcome="failed", said=(trace_event(Phase.STATE_INIT, body),))
        skipped = PhaseSkipped(reason="this workflow draws no plan")
        said = (
            trace_event(Phase.STATE_INIT, body),
            trace_event(Phase.PLAN_SELECTION, skipped),
            trace_event(Phase.BUDGET_ASSIGNMENT, BudgetAssigned(limits=dict(manifest.limits))),
        )
        return NodeResult(state=view.state, outcome="ready", said=said)


KIND = InitState()

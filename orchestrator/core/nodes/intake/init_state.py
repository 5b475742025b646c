"""init_state: task state and budget vector stand (phases 4 and 6; 5 is skipped where the graph has no
plan)."""

from typing import ClassVar

from orchestrator.core.common.frozen_model import Value
from orchestrator.core.workflow.node_protocol import Step, View, say
from orchestrator.core.workflow.plain_node import Plain
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BudgetAssigned, PhaseNoted, PhaseSkipped


class Config(Value):
    """Nothing to set."""


class InitState(Plain):
    kind: ClassVar[str] = "init_state"
    outcomes: ClassVar[tuple[str, ...]] = ("ready", "failed")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.STATE_INIT)
    artifact: ClassVar[str] = "active task state"
    config: ClassVar[type[Value]] = Config

    def enter(self, view: View) -> Step:
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
            return Step(state=state, outcome="failed", said=(say(Phase.STATE_INIT, body),))
        skipped = PhaseSkipped(reason="this workflow draws no plan")
        said = (
            say(Phase.STATE_INIT, body),
            say(Phase.PLAN_SELECTION, skipped),
            say(Phase.BUDGET_ASSIGNMENT, BudgetAssigned(limits=dict(manifest.limits))),
        )
        return Step(state=view.state, outcome="ready", said=said)


KIND = InitState()

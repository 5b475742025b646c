"""branch: a predicate over facts and inputs, nothing else (tiers 3 and 4; phase 14)."""

from typing import ClassVar

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.graph import GuardSpec
from orchestrator.core.workflow.edge_guards import holds
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import PhaseNoted


class Config(FrozenModel):
    """The predicate and why the run goes the other way when it does not hold."""

    predicate: GuardSpec
    reason: str = ""


class Branch(PlainNode):
    kind: ClassVar[str] = "branch"
    outcomes: ClassVar[tuple[str, ...]] = ("holds", "fails")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.TERMINATION_CHECK)
    artifact: ClassVar[str] = "stop or continue code"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Ask the predicate."""
        config: Config = view.node.config
        held = holds(config.predicate, view.state)
        body = PhaseNoted(artifact=self.artifact, detail=f"{config.predicate.name}:{str(held).lower()}")
        state = view.state if held else view.state.evolve(reason=config.reason or config.predicate.name)
        return NodeResult(
            state=state,
            outcome="holds" if held else "fails",
            said=(trace_event(Phase.TERMINATION_CHECK, body),),
        )


KIND = Branch()

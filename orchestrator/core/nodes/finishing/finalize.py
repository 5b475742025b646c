"""finalize: the result from committed state (phase 16); partial where the run was stopped (R-BUDGET-18)."""

from typing import ClassVar

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.results.run_output import result_body
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from orchestrator.core.workflow.value_sources import ValueSource
from traces.core.canonical import compute_digest
from traces.core.events.phases import Phase
from traces.core.events.trace_events import ResultFinalized


class Config(FrozenModel):
    """`partial`: the best that stands, marked as partial. `output`: named values instead of the draft's
    text."""

    partial: bool = False
    output: dict[str, ValueSource] = {}


class Finalize(PlainNode):
    kind: ClassVar[str] = "finalize"
    outcomes: ClassVar[tuple[str, ...]] = ("finalized",)
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.FINAL_RESPONSE)
    artifact: ClassVar[str] = "verified user response"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Assemble without a model call."""
        config: Config = view.node.config
        body, content = result_body(view, partial=config.partial, sources=config.output)
        result = view.desk.put(body)
        said = ResultFinalized(
            result=result, content_digest=compute_digest("result", content), partial=config.partial
        )
        state = view.state.evolve(result=result, partial=config.partial)
        return NodeResult(state=state, outcome="finalized", said=(trace_event(Phase.FINAL_RESPONSE, said),))


KIND = Finalize()

"""terminate: the one end of every run (phases 17 and 18). It writes trace, status, release of resources,
final state."""

from typing import ClassVar, Literal

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compensation.saga import begin_compensation
from orchestrator.core.results.termination import end_run
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase

Written = Literal["trace", "status", "release", "final_state"]
ALL: tuple[Written, ...] = ("trace", "status", "release", "final_state")


class Config(FrozenModel):
    """`code` is the terminal code; `writes` must name all four things (compilation checks it)."""

    code: TerminalCode
    writes: tuple[Written, ...] = ()


class Terminate(PlainNode):
    kind: ClassVar[str] = "terminate"
    outcomes: ClassVar[tuple[str, ...]] = ()
    phases: ClassVar[dict[str, Phase]] = {}
    artifact: ClassVar[str] = "audit trace archive"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """End the run, once what it did is taken back where it comes to no result (R-TOOL-15)."""
        config: Config = view.node.config
        return begin_compensation(view, config.code) or end_run(view, config.code)


KIND = Terminate()

"""terminate: the one end of every run (phases 17 and 18). It writes trace, status, release of resources,
final state."""

from typing import ClassVar, Literal

from orchestrator.core.common.frozen_model import Value
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compensation.saga import begin
from orchestrator.core.results.termination import ended
from orchestrator.core.workflow.node_protocol import Step, View
from orchestrator.core.workflow.plain_node import Plain
from traces.core.events.phases import Phase

Written = Literal["trace", "status", "release", "final_state"]
ALL: tuple[Written, ...] = ("trace", "status", "release", "final_state")


class Config(Value):
    """`code` is the terminal code; `writes` must name all four things (compilation checks it)."""

    code: TerminalCode
    writes: tuple[Written, ...] = ()


class Terminate(Plain):
    kind: ClassVar[str] = "terminate"
    outcomes: ClassVar[tuple[str, ...]] = ()
    phases: ClassVar[dict[str, Phase]] = {}
    artifact: ClassVar[str] = "audit trace archive"
    config: ClassVar[type[Value]] = Config

    def enter(self, view: View) -> Step:
        """End the run, once what it did is taken back where it comes to no result (R-TOOL-15)."""
        config: Config = view.node.config
        return begin(view, config.code) or ended(view, config.code)


KIND = Terminate()

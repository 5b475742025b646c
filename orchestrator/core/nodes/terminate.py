"""terminate: the one end of every run (phases 17 and 18). It writes trace, status, release of resources,
final state."""

from typing import ClassVar, Literal

from orchestrator.core.ending import ended
from orchestrator.core.nodes.base import Plain
from orchestrator.core.step import Step, View
from orchestrator.core.terminal import TerminalCode
from orchestrator.core.unwinding import begin
from orchestrator.core.value import Value
from traces.core.phases import Phase

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

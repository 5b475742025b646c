"""terminate: the one end of every run (phases 17 and 18). It writes trace, status, release of resources,
final state."""

from typing import ClassVar, Literal

from orchestrator.core.effects import Finish
from orchestrator.core.nodes.base import Plain
from orchestrator.core.output import report_body
from orchestrator.core.step import Step, View, say
from orchestrator.core.terminal import ENDINGS, TerminalCode, final_status
from orchestrator.core.value import Value
from traces.core.events import PhaseSkipped, RunFinished
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
        """End the run: its code, its class, its artifact."""
        config: Config = view.node.config
        ending = ENDINGS[config.code]
        expired = view.state.expired
        status = final_status(config.code, expired=expired)
        reason = view.state.reason or ending.meaning
        whole = None if view.state.partial else view.state.result
        result = whole or view.desk.put(report_body(view, config.code, reason))
        finish = Finish(
            id=view.effect_id(99, 0), code=config.code, status=status, reason=reason[:500], result=result
        )
        body = RunFinished(
            terminal_code=config.code.value,
            terminal_class=ending.terminal_class.value,
            status=status.value,
            reason=reason[:500],
            result=result,
        )
        state = view.state.evolve(
            outcome=config.code,
            status=status,
            result=result,
            reason=reason[:500],
            gates={},
            timer=None,
            queue=(),
            batch=(),
            held=False,
        )
        skipped = PhaseSkipped(reason="this workflow writes no memory")
        said = (say(Phase.MEMORY_WRITE, skipped), say(Phase.TRACE_LOGGING, body))
        return Step(state=state, said=said, effects=(finish,))


KIND = Terminate()

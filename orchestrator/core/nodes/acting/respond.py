"""respond: one model call without tools, whose text is the draft (tiers 1 to 4; phase 16)."""

from typing import ClassVar

from orchestrator.core.common.errors import Misfit
from orchestrator.core.common.frozen_model import Value
from orchestrator.core.domain.run_events import AnyEvent, ModelFailed, ModelReplied, Recovered, TimerFired
from orchestrator.core.domain.run_state import State
from orchestrator.core.llm.model_call import (
    Asking,
    again,
    ask,
    breached,
    cut_short,
    emptied,
    failed,
    once_more,
    timed,
    unavailable,
)
from orchestrator.core.nodes.acting.act import replied_said
from orchestrator.core.workflow.node_protocol import Step, View, say
from orchestrator.core.workflow.plain_node import Plain
from traces.core.events.phases import Phase
from traces.core.events.trace_events import OutputDrafted
from traces.core.integrity.chain import Said


class Respond(Plain):
    kind: ClassVar[str] = "respond"
    outcomes: ClassVar[tuple[str, ...]] = ("drafted", "refused", "empty", "model_unavailable")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.FINAL_RESPONSE)
    artifact: ClassVar[str] = "draft"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[Value]] = Asking

    def enter(self, view: View) -> Step:
        """Ask for the text."""
        return ask(view, view.state, view.node.config, ())

    def on(self, view: View, event: AnyEvent) -> Step:
        """A reply, a failure, or the time to try again."""
        if isinstance(event, ModelReplied):
            return self._replied(view, event)
        if isinstance(event, Recovered):
            return self._once_more(view, view.state, (failed(event),))
        if isinstance(event, ModelFailed):
            return self._failed(view, event)
        if isinstance(event, TimerFired):
            return timed(view, lambda state: ask(view, state, view.node.config, ()))
        raise Misfit(node=view.node.id, event=event.kind)

    def _failed(self, view: View, event: ModelFailed) -> Step:
        retry = again(view, event, view.node.config, ())
        return unavailable(view, event) if retry is None else retry

    def _replied(self, view: View, event: ModelReplied) -> Step:
        said = (replied_said(event),)
        if (unsafe := breached(view, event, said)) is not None:
            return unsafe
        if (short := cut_short(view, event, said)) is not None:
            return short
        state = view.state.evolve(
            counters=view.state.counters.evolve(model_attempts=0), feedback=None, reply=None
        )
        if event.refusal:
            return Step(state=state.evolve(reason="model_refused"), outcome="refused", said=said)
        if event.answer is None:
            return self._empty(view, state, said)
        drafted = say(Phase.FINAL_RESPONSE, OutputDrafted(draft=event.answer))
        return Step(state=state.evolve(draft=event.answer), outcome="drafted", said=(*said, drafted))

    def _empty(self, view: View, state: State, said: tuple[Said, ...]) -> Step:
        config: Asking = view.node.config
        tries = state.counters.empty + 1
        counted = emptied(view, state, tries)
        if tries > config.empty_retries:
            over = counted.evolve(counters=counted.counters.evolve(model_attempts=0), reason="empty_reply")
            return Step(state=over, outcome="empty", said=said)
        return self._once_more(view, counted, said)

    def _once_more(self, view: View, state: State, said: tuple[Said, ...]) -> Step:
        return once_more(view, state, said, lambda asking: ask(view, asking, view.node.config, ()))


KIND = Respond()

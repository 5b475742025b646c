"""classify_intent: which of the workflow's intents is meant? By declared words, deterministically (phase
1)."""

from typing import ClassVar

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel, Slug
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import PhaseNoted


class Config(FrozenModel):
    """`intents`: each with the words that speak for it; `default` for a goal that names none of them.

    An intent wins by naming more words than any other; a tie is ambiguous, nothing and no default is low
    confidence.
    """

    intents: dict[Slug, tuple[str, ...]] = Field(min_length=1)
    default: Slug | None = None


class ClassifyIntent(PlainNode):
    kind: ClassVar[str] = "classify_intent"
    outcomes: ClassVar[tuple[str, ...]] = ("classified", "ambiguous", "low_confidence")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.GOAL_INTAKE)
    artifact: ClassVar[str] = "task class"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Count words; the most wins."""
        config: Config = view.node.config
        text = view.manifest.goal.objective.casefold()
        scores = {
            name: sum(word.casefold() in text for word in words) for name, words in config.intents.items()
        }
        best = max(scores.values())
        winners = [name for name, score in scores.items() if score == best]
        if best == 0:
            return self._answer(
                view, "classified" if config.default else "low_confidence", config.default or ""
            )
        if len(winners) > 1:
            return self._answer(view, "ambiguous", ",".join(winners))
        return self._answer(view, "classified", winners[0])

    def _answer(self, view: NodeContext, outcome: str, intent: str) -> NodeResult:
        body = PhaseNoted(artifact=self.artifact, detail=f"{outcome}:{intent}")
        state = view.state
        if outcome == "classified":
            state = state.evolve(intent=intent)
        else:
            state = state.evolve(reason=f"{outcome}:{intent}", asked=("intent",))
        return NodeResult(state=state, outcome=outcome, said=(trace_event(Phase.GOAL_INTAKE, body),))


KIND = ClassifyIntent()

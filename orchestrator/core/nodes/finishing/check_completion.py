"""check_completion: done, not yet, stalled or blocked? (phases 12 to 15)"""

from decimal import Decimal
from typing import ClassVar, Literal

from orchestrator.core.common.frozen_model import FrozenModel, Slug
from orchestrator.core.results.validators import unmet
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, CompletionChecked, PhaseSkipped
from traces.core.integrity.chain import TraceEntry


class Config(FrozenModel):
    """`until`: `answer` leaves completion to the model's answer; `facts` needs all of `facts` to be
    committed."""

    until: Literal["answer", "facts"] = "answer"
    facts: tuple[Slug, ...] = ()


class CheckCompletion(PlainNode):
    kind: ClassVar[str] = "check_completion"
    outcomes: ClassVar[tuple[str, ...]] = (
        "complete",
        "incomplete",
        "stalled",
        "conflict",
        "low_confidence",
        "blocked",
        "impossible",
    )
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.TERMINATION_CHECK)
    artifact: ClassVar[str] = "stop or continue code"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Judge progress first, then completion."""
        config: Config = view.node.config
        outcome, detail, met, of = self._judge(view, config)
        checked = CompletionChecked(verdict=outcome, met=met, of=of, detail=detail)
        said: list[TraceEntry] = [
            trace_event(Phase.VALIDATION, checked),
            trace_event(Phase.REFLECTION_TRIGGER, PhaseSkipped(reason="this workflow has no critique")),
        ]
        if outcome in ("stalled", "blocked"):
            said.append(trace_event(Phase.ESCALATION_CHECK, self._build_tripped_breaker(view, outcome)))
        reason = detail if outcome not in ("complete", "incomplete") else view.state.reason
        return NodeResult(state=view.state.evolve(reason=reason), outcome=outcome, said=tuple(said))

    def _judge(self, view: NodeContext, config: Config) -> tuple[str, str, int, int]:
        state, boundary = view.state, view.pins.boundary
        if state.counters.unchanged >= boundary.unchanged_limit:
            return "stalled", "no_progress", 0, 0
        if state.counters.errors >= boundary.tool_error_limit:
            return "blocked", "tool_errors", 0, 0
        missing = [name for name in config.facts if name not in state.facts]
        if config.until == "answer":
            return "incomplete", "", 0, 1
        if missing:
            met = len(config.facts) - len(missing)
            return "impossible", f"missing:{','.join(missing)}", met, len(config.facts)
        # A criterion about the answer is asked of the draft; without one it would fail whatever comes.
        draft = view.state.draft
        text = "" if draft is None else view.desk.text(draft, 200_000)
        failing = unmet(view, text, view.manifest.goal.acceptance)
        met = len(config.facts)
        if failing:
            return "low_confidence", f"unmet:{failing[0]}"[:300], met, met + len(failing)
        return "complete", "", met, met

    def _build_tripped_breaker(self, view: NodeContext, outcome: str) -> BreakerTripped:
        boundary, counters = view.pins.boundary, view.state.counters
        if outcome == "stalled":
            return BreakerTripped(
                breaker="no_progress",
                reason="state_unchanged",
                limit=Decimal(boundary.unchanged_limit),
                actual=Decimal(counters.unchanged),
            )
        return BreakerTripped(
            breaker="tool_errors",
            reason="repeated_errors",
            limit=Decimal(boundary.tool_error_limit),
            actual=Decimal(counters.errors),
        )


KIND = CheckCompletion()

"""goal_intake: is the goal readable, within policy, and safe to work on? (phase 1)"""

from typing import ClassVar

from orchestrator.core.guardrails.content_screening import (
    screen_content,
    stop_unsafe_run,
    with_safety_alarm,
    words_of,
)
from orchestrator.core.guardrails.safety_rules import find_unsafe_pattern
from orchestrator.core.results.validators import known_validators
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.canonical import canonical_outside
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, PhaseNoted


class GoalIntake(PlainNode):
    kind: ClassVar[str] = "goal_intake"
    outcomes: ClassVar[tuple[str, ...]] = ("accepted", "unparseable", "against_policy", "unsafe")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.GOAL_INTAKE)
    artifact: ClassVar[str] = "goal object"

    def enter(self, view: NodeContext) -> NodeResult:
        """Judge the goal object; the reason stands in the state."""
        outcome, detail = self._judge(view)
        body = PhaseNoted(artifact=self.artifact, detail=detail, digest=view.manifest.goal_digest)
        said = [trace_event(Phase.GOAL_INTAKE, body)]
        if outcome == "unsafe":
            said.append(
                trace_event(
                    Phase.GOAL_INTAKE, BreakerTripped(breaker="safety", reason=detail, subject="goal")
                )
            )
        goal = view.manifest.goal
        given = canonical_outside({"objective": goal.objective, "inputs": goal.inputs})
        screened = screen_content(view, "input", words_of(given), "goal")
        if outcome == "accepted" and screened.severity == "stop":
            return stop_unsafe_run(view.state, screened, "goal", tuple(said))
        state = with_safety_alarm(view.state.evolve(reason=detail), screened)
        return NodeResult(state=state, outcome=outcome, said=(*said, *screened.said))

    def _judge(self, view: NodeContext) -> tuple[str, str]:
        goal = view.manifest.goal
        if not goal.objective.strip():
            return "unparseable", "empty_objective"
        unknown = [c.validator for c in goal.acceptance if c.validator not in known_validators()]
        if unknown:
            return "unparseable", f"unknown_validator:{unknown[0]}"
        found = find_unsafe_pattern(goal.objective)
        if found is not None:
            return "unsafe", found
        text = goal.objective.casefold()
        denied = next((word for word in view.pins.boundary.denied_words if word.casefold() in text), None)
        return ("against_policy", f"denied_word:{denied}") if denied else ("accepted", "")


KIND = GoalIntake()

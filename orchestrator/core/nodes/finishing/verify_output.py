"""verify_output: the draft against schema, evidence and criteria (phase 12). Hard checks first, each with
its level."""

from typing import ClassVar, Literal

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.goal import Criterion
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.guardrails.content_screening import screen_content, stop_unsafe_run
from orchestrator.core.guardrails.grounding import find_ungrounded_claims
from orchestrator.core.guardrails.safety_rules import find_unsafe_pattern
from orchestrator.core.results.run_output import WHOLE, read_output
from orchestrator.core.results.validators import unmet
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import GroundingViolation, OutputVerified
from traces.core.integrity.chain import TraceEntry


class Config(FrozenModel):
    """`figures`: whether every figure must stand in a fact or in the goal (R-LOOP-31).

    `criteria`: whether the goal's schema, criteria and review are asked for here; a draft that is only
    material for the next step is checked for its evidence alone.

    `acceptance`: what the workflow itself asks of the draft here, whatever the goal asks for besides.
    """

    figures: bool = True
    criteria: bool = True
    acceptance: tuple[Criterion, ...] = ()


Verdict = Literal["passed", "failed", "needs_review", "rejected"]


class VerifyOutput(PlainNode):
    kind: ClassVar[str] = "verify_output"
    outcomes: ClassVar[tuple[str, ...]] = ("passed", "failed", "needs_review", "rejected")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.VALIDATION)
    artifact: ClassVar[str] = "validation score card"
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Schema, then grounding, then the goal's own criteria; the first failing level decides."""
        draft = view.state.draft
        if draft is None:
            return NodeResult(state=view.state.evolve(reason="no_draft"), outcome="failed")
        text = view.desk.text(draft, 200_000)
        screened = screen_content(view, "output", text, "draft")
        if screened.severity == "stop":
            return stop_unsafe_run(view.state, screened, "draft", ())
        checked = self._check_draft(view, draft, text, screened.severity == "gate")
        return checked._replace(said=(*screened.said, *checked.said))

    def _check_draft(self, view: NodeContext, draft: str, text: str, guarded: bool) -> NodeResult:
        config: Config = view.node.config
        for level, validator, faults in self._levels(view, text):
            if faults:
                return self._fail_draft(view, draft, level, validator, faults)
        asked = config.criteria and view.manifest.goal.requires_human_approval
        if asked or guarded:
            why = "the goal asks for a person's review" if asked else "a safety detector found something"
            said = (self._said(draft, 3, "human_review", "needs_review", why),)
            return NodeResult(state=_with_passed_draft(view, draft), outcome="needs_review", said=said)
        said = (self._said(draft, 2, "schema_grounding_criteria", "passed", ""),)
        return NodeResult(
            state=_with_passed_draft(view, draft).evolve(reason=""), outcome="passed", said=said
        )

    def _levels(self, view: NodeContext, text: str) -> list[tuple[int, str, list[str]]]:
        config: Config = view.node.config
        schema = view.output_schema
        levels: list[tuple[int, str, list[str]]] = []
        if config.criteria and schema is not None:
            value = read_output(text)
            fault = validate_against_schema(schema, value)
            levels.append((1, "output_schema", [fault.detail] if fault else []))
        levels.append((2, "grounding", find_ungrounded_claims(view, text, figures=config.figures)))
        levels.append((2, "workflow", unmet(view, text, config.acceptance)))
        if config.criteria:
            levels.append((2, "acceptance", unmet(view, text, view.manifest.goal.acceptance)))
        return levels

    def _fail_draft(
        self, view: NodeContext, draft: str, level: int, validator: str, faults: list[str]
    ) -> NodeResult:
        detail = "; ".join(faults)[:2_000]
        said: list[TraceEntry] = [self._said(draft, level, validator, "failed", detail[:300])]
        if validator == "grounding":
            said.extend(self._violation(draft, fault) for fault in faults)
        counters = view.state.counters
        state = _with_best_draft(view, draft, validator).evolve(
            feedback=view.desk.put(detail.encode()),
            counters=counters.evolve(repairs=counters.repairs + 1),
            reason=f"{validator}:{faults[0]}"[:200],
        )
        return NodeResult(state=state, outcome="failed", said=tuple(said))

    def _violation(self, draft: str, fault: str) -> TraceEntry:
        return trace_event(
            Phase.VALIDATION, GroundingViolation(claim=fault[:200], where="answer", source=draft)
        )

    def _said(self, draft: str, level: int, validator: str, verdict: Verdict, detail: str) -> TraceEntry:
        body = OutputVerified(
            draft=draft,
            level=level,
            validator=validator,
            method="deterministic",
            verdict=verdict,
            detail=detail,
        )
        return trace_event(Phase.VALIDATION, body)


def _with_passed_draft(view: NodeContext, draft: str) -> RunState:
    return view.state.evolve(best=draft, best_score=WHOLE)


def _with_best_draft(view: NodeContext, draft: str, failed: str) -> RunState:
    """The state with a failed draft as the best one where it is: grounded, safe, of the right form, and more
    of its criteria hold than of any before it (R-BUDGET-18)."""
    text = view.desk.text(draft, 200_000)
    schema = view.output_schema
    misshapen = schema is not None and validate_against_schema(schema, read_output(text)) is not None
    if failed in ("output_schema", "grounding") or misshapen or find_unsafe_pattern(text) is not None:
        return view.state
    score = _score_draft(view, text)
    if view.state.best is not None and score < view.state.best_score:
        return view.state
    return view.state.evolve(best=draft, best_score=score)


def _score_draft(view: NodeContext, text: str) -> int:
    """The share of the criteria asked for here that hold; one without any held nothing up."""
    config: Config = view.node.config
    goal = view.manifest.goal.acceptance if config.criteria else ()
    criteria = (*config.acceptance, *goal)
    held = sum(not unmet(view, text, (criterion,)) for criterion in criteria)
    return WHOLE * held // max(1, len(criteria))


KIND = VerifyOutput()

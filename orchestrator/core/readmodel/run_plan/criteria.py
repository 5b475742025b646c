"""The acceptance criteria of a goal and of its workflow: met, unmet, or not checked yet.

A criterion about facts alone is evaluated on the current facts. A criterion about the answer has the result
of the newest check that evaluated it. A distinction that the check does not make is not made here either.
"""

from collections.abc import Iterator

from orchestrator.core.common.goal import Criterion
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.graph import CompiledGraph, Node
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.readmodel.run_plan.plan_types import CheckFinding, CriterionState, Move, ShownCriterion
from orchestrator.core.results.validators import known_validators
from orchestrator.core.workflow.node_protocol import NodeContext

CUT = 300
"""So much of what is wrong stands in a check's event: beyond it nobody can tell what else failed."""
PASSED = ("passed", "needs_review", "complete")
FAILED = ("failed", "low_confidence")
UNMET = "unmet:"


def criteria_of(
    graph: CompiledGraph,
    manifest: Manifest,
    state: RunState,
    moves: tuple[Move, ...],
    said: CheckFinding | None,
) -> tuple[ShownCriterion, ...]:
    """Return the goal's criteria, then the workflow's in the order of its nodes."""
    asked = _RunCriteria(graph, manifest, state, moves, said)
    return (*asked.of_goal(), *asked.of_workflow())


class _RunCriteria:
    """The criteria of one run."""

    def __init__(
        self, graph: CompiledGraph, manifest: Manifest, state: RunState, moves: tuple[Move, ...],
        said: CheckFinding | None,
    ) -> None:  # fmt: skip
        self.graph, self.manifest, self.state, self.said = graph, manifest, state, said
        self.judged = [move for move in moves if _is_judging_move(graph, move)]

    def of_goal(self) -> Iterator[ShownCriterion]:
        """Yield the goal's criteria; any node that checks them decides whether they are met."""
        criteria = self.manifest.goal.acceptance
        judges = [node.id for node in self.graph.nodes.values() if _asks_goal(node)]
        for criterion in criteria:
            met = self._met(criterion, criteria, judges, "acceptance")
            yield ShownCriterion(
                validator=criterion.validator, parameters=criterion.parameters, of="goal", met=met
            )

    def of_workflow(self) -> Iterator[ShownCriterion]:
        """Yield the facts that a node waits for, and the criteria that a node applies to the draft."""
        for node in self.graph.nodes.values():
            for fact in node.config.facts if node.kind == "check_completion" else ():
                needed = Criterion(validator="fact_committed", parameters={"fact": fact})
                yield self._build_shown_criterion(
                    node, needed, CriterionState.MET if fact in self.state.facts else CriterionState.UNMET
                )
            criteria = node.config.acceptance if node.kind == "verify_output" else ()
            for criterion in criteria:
                met = self._met(criterion, criteria, [node.id], "workflow")
                yield self._build_shown_criterion(node, criterion, met)

    def _build_shown_criterion(self, node: Node, criterion: Criterion, met: CriterionState) -> ShownCriterion:
        return ShownCriterion(
            validator=criterion.validator, parameters=criterion.parameters, of="workflow", met=met,
            node=node.id,
        )  # fmt: skip

    def _met(
        self, criterion: Criterion, together: tuple[Criterion, ...], judges: list[str], level: str
    ) -> CriterionState:
        module = known_validators().get(criterion.validator)
        if module is None:
            return CriterionState.OPEN
        if getattr(module, "OF_FACTS", False):
            return (
                CriterionState.MET
                if module.holds(self._view(), "", criterion.parameters)
                else CriterionState.UNMET
            )
        newest = next((move for move in reversed(self.judged) if move.source in judges), None)
        if newest is None:
            return CriterionState.OPEN
        if newest.outcome in PASSED:
            return CriterionState.MET
        # Only the newest check's findings are known.
        if self.said is None or newest is not self.judged[-1]:
            return CriterionState.OPEN
        return self._judge_after_failure(criterion, together, level, self.said)

    def _judge_after_failure(
        self, criterion: Criterion, together: tuple[Criterion, ...], level: str, said: CheckFinding
    ) -> CriterionState:
        """Return the state of a criterion after a failed check.

        Levels are checked in order, and only the first failing level is reported.
        """
        if said.validator == "acceptance" and level == "workflow":
            return CriterionState.MET
        detail, only_first = said.detail, said.detail.startswith(UNMET)
        if said.validator != level and not (only_first and level == "acceptance"):
            return CriterionState.OPEN
        if f"{criterion.validator} {dict(criterion.parameters)}" in detail:
            return CriterionState.UNMET
        if f"{criterion.validator}: " in detail:
            alike = sum(one.validator == criterion.validator for one in together)
            return CriterionState.UNMET if alike == 1 else CriterionState.OPEN
        return CriterionState.OPEN if only_first or len(detail) >= CUT else CriterionState.MET

    def _view(self) -> NodeContext:
        """Return the context for a criterion about facts: no content, no time."""
        return NodeContext(
            graph=self.graph, manifest=self.manifest, node=self.graph.nodes[self.state.position],
            state=self.state, headroom=Headroom(), desk=ContentStore(b"", {}), at=self.manifest.admitted_at,
            number=self.state.version + 1,
        )  # fmt: skip


def _asks_goal(node: Node) -> bool:
    """Return whether a node checks the goal's criteria."""
    if node.kind == "check_completion":
        return bool(node.config.until == "facts")
    return node.kind == "verify_output" and bool(node.config.criteria)


def _is_judging_move(graph: CompiledGraph, move: Move) -> bool:
    # The admission record has no source node.
    node = graph.nodes.get(move.source)
    judge = node is not None and node.kind in ("verify_output", "check_completion")
    return judge and move.outcome in (*PASSED, *FAILED)

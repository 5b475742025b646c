"""The nodes of a graph as steps: fixed calls, model turns and questions, as of their last visit."""

from collections.abc import Mapping

from orchestrator.core.calls.open_effects import UNSURE
from orchestrator.core.domain.graph import CompiledGraph, Node
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_state import Fact, Result, RunState
from orchestrator.core.readmodel.run_plan.call_steps import standing_of, wait_of
from orchestrator.core.readmodel.run_plan.plan_types import Move, PlanStep, StepStanding, TracedCall
from orchestrator.core.readmodel.run_plan.reachable_steps import GOOD, WORKS, list_later_nodes

S = StepStanding
KINDS = (*WORKS, "ask_user")
ENDED_WELL = {**GOOD, "ask_user": ("answered",)}
WRITERS = ("respond", "act")
"""Whose answers become the draft."""


def node_id(node: str) -> str:
    """Return the id of a node's step."""
    return f"node-{node}"


def left_by(moves: tuple[Move, ...]) -> dict[str, str]:
    """Return the last outcome of each node that was left, in the order of leaving."""
    found: dict[str, str] = {}
    for move in moves:
        if move.outcome != ".":
            found.pop(move.source, None)
            found[move.source] = move.outcome
    return found


def build_node_step(node: Node, pins: Pins, standing: StepStanding) -> PlanStep:
    """Build the step of a node about which nothing else is known."""
    if node.kind != "tool":
        return PlanStep(
            id=node_id(node.id), kind="question" if node.kind == "ask_user" else "model", name=node.id,
            by=node.id, node=node.id, standing=standing,
        )  # fmt: skip
    spec = pins.by_name.get(node.config.tool)
    return PlanStep(
        id=node_id(node.id), kind="call", name=node.config.tool, by=node.id, node=node.id,
        standing=standing, gated=spec is not None and spec.needs_gate,
    )  # fmt: skip


def at_work(state: RunState, step: PlanStep) -> PlanStep:
    """Return the step of the node where the run is: a model's turn or a question."""
    if any(held.kind == "call_model" for held in state.pending.values()):
        return step.evolve(standing=S.UNDER_WAY)
    wait = wait_of(state)
    return step.evolve(standing=S.READY if wait is None else S.WAITING, wait=wait)


class NodeHistory:
    """The result of each node, from the state and the records.

    A node that the run has passed and may reach again is done if it achieved its purpose. A model in a loop
    has its next turn ahead.
    """

    def __init__(
        self, graph: CompiledGraph, pins: Pins, state: RunState, moves: tuple[Move, ...],
        asked: tuple[TracedCall, ...], results: Mapping[str, Result], *, again: bool,
    ) -> None:  # fmt: skip
        self.graph, self.pins, self.state, self.results = graph, pins, state, results
        self.left = left_by(moves)
        self.facts: dict[str, tuple[str, Fact]] = {
            fact.node: (name, fact) for name, fact in state.facts_in_order()
        }
        # Nodes whose facts a retry took over from the previous run.
        self.carried = [node for node in self.facts if node not in self.left]
        self.drafted = self._find_draft_node(moves) if again and state.draft is not None else ""
        if self.drafted:
            self.carried.insert(self._place_of_draft(), self.drafted)
        self.asked = {one.tool: one for one in asked if one.by == "node"}

    def step(self, node: Node, *, ahead: bool) -> PlanStep:
        """Return the node's step; `ahead` says whether the run may reach the node."""
        step = build_node_step(node, self.pins, S.AHEAD if ahead else S.LEFT_OUT)
        if node.kind == "tool":
            return self._call(node, step, ahead=ahead)
        outcome = "drafted" if node.id == self.drafted else self.left.get(node.id)
        if outcome is None or (ahead and node.kind == "act") or outcome[0] == "!":
            return step
        if outcome in ENDED_WELL[node.kind]:
            return step.evolve(standing=S.DONE)
        return step if ahead else step.evolve(standing=S.FAILED, why=outcome)

    def _find_draft_node(self, moves: tuple[Move, ...]) -> str:
        """Return the node that wrote the draft that a retry began with, or "" if it is unknown.

        The node is not recorded. It is derived only if exactly one node that writes drafts leads to the place
        where the retry began. The result is also empty if that node was left since.
        """
        began = (moves[0].source or moves[0].target) if moves else self.state.position
        found = [
            node
            for node in self.graph.nodes.values()
            if node.kind in WRITERS and began in list_later_nodes(self.graph, self.state, node.id)
        ]
        if len(found) != 1 or found[0].kind != "respond" or found[0].id in self.left:
            return ""
        return found[0].id

    def _place_of_draft(self) -> int:
        """Return the index of the first carried call that comes after the draft's node."""
        later = list_later_nodes(self.graph, self.state, self.drafted)
        return next((n for n, node in enumerate(self.carried) if node in later), len(self.carried))

    def _call(self, node: Node, step: PlanStep, *, ahead: bool) -> PlanStep:
        """Return the step of a fixed call from its newest result, its fact, or the outcome of its visit."""
        result = self.results.get(node.id)
        if result is not None and result.status != "ok":
            given = step.evolve(call=result.call, why=result.status)
            return given if ahead else given.evolve(standing=standing_of(result.status))
        if node.id in self.facts:
            name, fact = self.facts[node.id]
            return step.evolve(standing=S.DONE, call=fact.call, fact=name)
        outcome = self.left.get(node.id)
        if outcome is None or ahead or outcome[0] == "!":
            return step.evolve(call=result.call) if result is not None else step
        if outcome != "requested":
            return step.evolve(standing=S.FAILED, why=outcome)
        return self._cut_off(step)

    def _cut_off(self, step: PlanStep) -> PlanStep:
        """Return the step of a requested call that produced no fact."""
        asked = self.asked.get(step.name)
        if asked is None:
            return step.evolve(standing=S.FAILED, why="no_fact")
        return cut_off(self.state, step, asked)


def cut_off(state: RunState, step: PlanStep, asked: TracedCall) -> PlanStep:
    """Return the step of a call that gets no result any more, or whose result the state no longer holds."""
    step = step.evolve(call=asked.call)
    if asked.status not in ("", "ok"):
        return step.evolve(standing=standing_of(asked.status), why=asked.status)
    deed = state.deeds.get(step.call)
    if deed is not None and {deed.standing, deed.why} & set(UNSURE):
        return step.evolve(standing=S.IN_DOUBT)
    return step.evolve(standing=S.FAILED, why="no_result") if asked.sent else step.evolve(standing=S.LEFT_OUT)

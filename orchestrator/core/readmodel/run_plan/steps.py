"""The steps of a run in order, from its state, its graph and the records of its path."""

from collections.abc import Iterator

from orchestrator.core.accounting.remaining_estimate import asker_of
from orchestrator.core.calls.open_effects import UNSURE
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_state import Result, RunState
from orchestrator.core.guardrails.taint_sources import UNDO
from orchestrator.core.readmodel.run_plan.call_steps import (
    PlacedCall,
    last_of,
    list_pending_calls,
    standing_of,
)
from orchestrator.core.readmodel.run_plan.criteria import criteria_of
from orchestrator.core.readmodel.run_plan.node_steps import (
    KINDS,
    NodeHistory,
    at_work,
    build_node_step,
    cut_off,
    node_id,
)
from orchestrator.core.readmodel.run_plan.plan_types import (
    CheckFinding,
    Move,
    PlanStep,
    RunPlan,
    StepStanding,
    TracedCall,
)
from orchestrator.core.readmodel.run_plan.reachable_steps import NOWHERE, NodesAhead, ways_from
from orchestrator.core.workflow.edge_guards import MODEL

S = StepStanding
SETTLED = (S.DONE, S.FAILED, S.REFUSED, S.IN_DOUBT)


def build_run_plan(
    graph: CompiledGraph, manifest: Manifest, state: RunState, moves: tuple[Move, ...] = (),
    asked: tuple[TracedCall, ...] = (), said: CheckFinding | None = None,
) -> RunPlan:  # fmt: skip
    """Build the steps and criteria of a run.

    `moves` are its transitions in order, `asked` its calls since the newest reply, `said` the finding of the
    newest check. Pure: the same run gives the same plan.
    """
    told = _StepBuilder(graph, manifest, state, moves, asked)
    return RunPlan(
        steps=tuple(told.steps()),
        criteria=criteria_of(graph, manifest, state, moves, said),
        over=state.outcome is not None,
    )


def select_step_window(steps: tuple[PlanStep, ...], most: int, before: int) -> tuple[int, int]:
    """Return the index range of the steps that a page shows: at most `most` steps.

    At most `before` of them precede the first unfinished step, unless the plan ends too soon to fill the
    page.
    """
    first = next((n for n, step in enumerate(steps) if step.standing not in SETTLED), len(steps))
    begin = max(0, min(first - before, len(steps) - most))
    return begin, min(len(steps), begin + most)


class _StepBuilder:
    """One build of the steps."""

    def __init__(
        self, graph: CompiledGraph, manifest: Manifest, state: RunState, moves: tuple[Move, ...],
        asked: tuple[TracedCall, ...],
    ) -> None:  # fmt: skip
        self.graph, self.pins, self.state = graph, manifest.pins, state
        self.calls = list_pending_calls(state, self.pins)
        self.asked = asked
        by_node = self._results_of_node()
        self.results = [one for one in state.results if by_node is None or one.call != by_node[1].call]
        held = {} if by_node is None else {by_node[0]: by_node[1]}
        again = manifest.began is not None
        self.past = NodeHistory(graph, self.pins, state, moves, asked, held, again=again)
        self.ways = self._ways()

    def steps(self) -> Iterator[PlanStep]:
        """Yield all steps: finished, this turn's calls, the current node, those ahead, and the skipped."""
        current = self._current()
        shown = {step.node: None for step in current}
        nodes = {
            node.id: self.past.step(node, ahead=node.id in self.ways.after)
            for node in self.graph.nodes.values()
            if node.kind in KINDS and node.id not in shown
        }
        passed = (*self.past.carried, *self.past.left)
        over = [node for node in passed if node in nodes and nodes[node].standing in SETTLED]
        for node in over:
            yield self._with_deed(nodes.pop(node))
        yield from (self._with_deed(step) for step in self._turn())
        yield from current
        for node, before in self.ways.after.items():
            if node in nodes:
                yield self._ahead(nodes.pop(node), [one for one in before if one not in over])
        yield from (step for step in nodes.values() if step.kind != "question")

    # -- this turn

    def _results_of_node(self) -> tuple[str, Result] | None:
        """Return the result of a fixed call with its node.

        Such a result is the only one, under its own id.
        """
        results = self.state.results
        node = self.graph.nodes.get(next(iter(self.state.last_askers), ""))
        if len(results) != 1 or node is None or node.kind != "tool":
            return None
        (result,) = results
        fixed = result.provider_id == result.call and result.tool == node.config.tool
        return (node.id, result) if fixed else None

    def _turn(self) -> Iterator[PlanStep]:
        """Return the calls of the model's last reply, in order, and the call that undoes a change."""
        found = [self._build_answered_step(one) for one in self.results]
        found += [self._build_open_step(one) for one in self.calls if one.call.by not in self.graph.nodes]
        known = {step.call: None for step in found}
        found += [self._cut(one) for one in self._lost() if one.call not in known]
        return iter(sorted(found, key=_build_call_sort_key))

    def _build_answered_step(self, result: Result) -> PlanStep:
        fact = next((name for name, one in self.state.facts.items() if one.call == result.call), "")
        step = self._call(result.call, result.tool, MODEL, standing_of(result.status))
        return step.evolve(why="" if result.status == "ok" else result.status, fact=fact)

    def _build_open_step(self, one: PlacedCall) -> PlanStep:
        call = one.call
        standing = one.standing
        if self.state.halting is not None and call in self.state.queue:
            standing = S.LEFT_OUT
        step = self._call(call.id, call.tool, call.by, standing)
        if standing is S.LEFT_OUT:
            return step
        return step.evolve(wait=one.wait, after=tuple(self._id(before) for before in one.after))

    def _lost(self) -> Iterator[TracedCall]:
        """Yield the model's calls from a reply that was never fully answered, in an interrupted run."""
        state = self.state
        cut = state.outcome is not None or state.interrupt is not None or state.unwinding is not None
        turn = [one for one in self.asked if one.by != UNDO]
        if cut and state.reply is not None and turn and turn[-1].by == MODEL:
            yield from (one for one in turn if one.by == MODEL)

    def _cut(self, one: TracedCall) -> PlanStep:
        return cut_off(self.state, self._call(one.call, one.tool, MODEL, S.LEFT_OUT), one)

    def _call(self, call: str, tool: str, by: str, standing: StepStanding) -> PlanStep:
        spec = self.pins.by_name.get(tool)
        return PlanStep(
            id=self._id(call), kind="call", name=tool, by=by, call=call, standing=standing,
            gated=spec is not None and spec.needs_gate,
        )  # fmt: skip

    def _id(self, call: str) -> str:
        asker = next((one.call.by for one in self.calls if one.call.id == call), "")
        return node_id(asker) if asker in self.graph.nodes else f"call-{call}"

    # -- where the run is, and what lies ahead

    def _current(self) -> list[PlanStep]:
        """Return the step of the node where the run is: a fixed call in progress, a turn or a question."""
        state, node = self.state, self.graph.nodes[self.state.position]
        for one in self.calls:
            if (asker := self.graph.nodes.get(one.call.by)) is not None:
                step = build_node_step(asker, self.pins, one.standing)
                return [step.evolve(call=one.call.id, wait=one.wait)]
        working = state.outcome is None and state.unwinding is None and node.kind in KINDS
        return [at_work(state, build_node_step(node, self.pins, S.READY))] if working else []

    def _ways(self) -> NodesAhead:
        state = self.state
        if state.outcome is not None or state.unwinding is not None:
            return NOWHERE
        if state.halting is not None:
            out = self.graph.interrupts[state.halting.interrupt]
            return ways_from(self.graph, state, (out, asker_of(state)), entering=True)
        # Only a retry is at a fixed call that was not requested; the call has yet to write its fact.
        fixed = self.graph.nodes[state.position].kind == "tool" and not self.calls
        return ways_from(self.graph, state, (state.position, asker_of(state)), entering=fixed)

    def _ahead(self, step: PlanStep, before: list[str]) -> PlanStep:
        """Return a node ahead, placed after the nodes on the way to it or after the run's current step."""
        calls = [one.call for one in self.calls]
        turns = bool(calls) and calls[0].by not in self.graph.nodes and step.node in self.ways.first
        behind = turns and self.graph.nodes[step.node].kind == "act"
        after = tuple(dict.fromkeys([*self._open_ids(step), *(node_id(node) for node in before)]))
        return step.evolve(standing=S.BEHIND if behind else step.standing, after=after)

    def _open_ids(self, step: PlanStep) -> list[str]:
        if step.node not in self.ways.first or self.state.halting is not None:
            return []
        if self.calls:
            return [self._id(call) for call in last_of(self.state, self.pins)]
        return [one.id for one in self._current()]

    def _with_deed(self, step: PlanStep) -> PlanStep:
        deed = self.state.deeds.get(step.call)
        if deed is None or deed.standing not in ("undone", "left") or deed.why in UNSURE:
            return step
        return step.evolve(became="undone" if deed.standing == "undone" else "left")


def _build_call_sort_key(step: PlanStep) -> tuple[bool, int]:
    return step.by == UNDO, int(step.call[1:])

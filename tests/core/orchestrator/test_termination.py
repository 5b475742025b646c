"""Whatever model, tools, people and operators do: the run ends within its bound, and its invariants hold
(R-GRAPH-17)."""

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.compiler import transition_bound
from orchestrator.core.effects import CallTool
from orchestrator.core.goal import Goal
from orchestrator.core.graph import CompiledGraph
from orchestrator.core.state import State
from orchestrator.core.step import Walk
from tests.core.orchestrator.playing import COVERED, next_event
from tests.core.orchestrator.simulation import START, Simulation, manifest, pins
from tests.factories.graphs import graphs
from tests.factories.tools import BOUNDARY, PROMPT, TOOLS
from tests.proves import proves

LIMITS = {
    "model_turns": 4,
    "tool_calls": 5,
    "steps": 5,
    "external_calls": 3,
    "input_tokens": 200_000,
    "cost_usd": 1,
    "output_tokens": 20_000,
    "total_tokens": 200_000,
    "wall_clock_seconds": 300,
    "retries": 2,
    "side_effects": 1,
    "granted_side_effects": 2,
}
SEEDS = 4
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def _hold(before: State, walk: Walk, run: Simulation) -> None:
    """What must hold after every walk (R-LOOP-2)."""
    after = walk.state
    for dimension in (
        "model_turns",
        "tool_calls",
        "external_calls",
        "side_effects",
        "granted_side_effects",
        "steps",
    ):
        left = after.left(dimension)
        assert left is None or left >= 0, dimension
    for number, step in enumerate(walk.transitions):
        assert step.number == before.version + number + 1
    for effect in walk.effects:
        if (
            isinstance(effect, CallTool)
            and effect.mutating
            and run.manifest.pins.by_name[effect.tool].needs_gate
        ):
            run.grants[effect.key] += effect.grant is not None
            assert run.grants[effect.key], "a gated call flies only under a grant"
    assert len({effect.id for effect in run.asked}) == len(run.asked), "effect ids are their own"
    for name, fact in after.facts.items():
        assert fact.digest in run.contents, f"{name} rests on an observation"


@proves("R-GRAPH-17")
@proves("R-LOOP-2")
def test_every_run_of_every_graph_ends_within_its_bound(capsys: pytest.CaptureFixture[str]) -> None:
    seen: Counter[str] = Counter()

    @given(graphs(extra=6), st.integers(0, 2**32))
    @settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
    def ends(graph: CompiledGraph, seed: int) -> None:
        for turn in range(SEEDS):
            _count(seen, _ended(graph, Random(seed + turn)))

    ends()
    told = {**dict(sorted(COVERED.items())), **dict(sorted(seen.items()))}
    with capsys.disabled():
        print(f"\ntermination: {told}")  # noqa: T201 - how much was covered is what the reader wants to see
    # Far below what any seed covers: a generator that lost its shapes would come here.
    assert len([name for name in seen if name.startswith("kind:")]) >= 12
    assert len([name for name in seen if name.startswith("interrupt:")]) >= 2
    assert seen["cycles"] >= 5
    assert seen["depth"] >= 20


def _ended(graph: CompiledGraph, play: Random) -> Simulation:
    """One run, driven against everything that `play` thinks of until it has ended."""
    bound = transition_bound(graph, manifest(graph, PINS, LIMITS).limits)
    held = play.choice((PINS, ASKING))
    run = Simulation.of(graph, manifest(graph, held, {**LIMITS, "transitions": bound}, _goal(play)))
    before = run.state
    walk = run.start()
    _hold(before, walk, run)
    for _ in range(12 * bound):
        if run.state.outcome is not None:
            break
        event, takes = next_event(play, run)
        before = run.state
        _hold(before, run.feed(event, after_ms=takes), run)
    assert run.state.outcome is not None, "the run goes on and on"
    assert run.state.version <= run.state.limits["transitions"] + 3 * len(graph.nodes)
    assert run.state.counters.budget_requests <= held.boundary.budget_requests
    assert not run.open
    assert _one_result_each(run)
    return run


def _count(seen: Counter[str], run: Simulation) -> None:
    """Which kinds were entered, which interrupts taken, how often a node was come back to, and the longest
    run in transitions."""
    assert run.state.outcome is not None
    path = [step.target for step in run.transitions if step.target != step.source]
    seen.update(f"kind:{run.graph.nodes[node].kind}" for node in {*path, run.graph.entry})
    seen.update(f"interrupt:{step.outcome[1:]}" for step in run.transitions if step.outcome.startswith("!"))
    seen["cycles"] += len(path) - len(set(path))
    seen["depth"] = max(seen["depth"], run.state.version)
    seen.update((f"code:{run.state.outcome.value}", "runs"))
    seen["transitions"] += run.state.version


def _one_result_each(run: Simulation) -> bool:
    """No call is answered twice in the conversation."""
    answered = [
        body.call
        for kind in ("fact_committed", "failure_committed", "call_not_run")
        for body in run.said(kind)
    ]
    return len(answered) == len(set(answered))


def _goal(play: Random) -> Goal:
    deadline = play.choice((None, START + timedelta(hours=1), START + timedelta(milliseconds=200)))
    return Goal(objective="how much is 2 + 2?", inputs={"order_id": "A-1"}, deadline=deadline)


PINS = pins(TOOLS, BOUNDARY, (PROMPT,))
ASKING = pins(TOOLS, BOUNDARY.evolve(on_exhaustion="request"), (PROMPT,))

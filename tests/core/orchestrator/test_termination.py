"""Whatever model, tools, people and operators do: the run ends within its bound, and its invariants hold
(R-GRAPH-17)."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.domain.graph import CompiledGraph
from tests.core.orchestrator.playing import COVERED, SLOW, ended
from tests.core.orchestrator.simulation import Simulation
from tests.factories.graphs import graphs
from tests.proves import proves

SEEDS = 4


@proves("R-GRAPH-17")
@proves("R-LOOP-2")
def test_every_run_of_every_graph_ends_within_its_bound(capsys: pytest.CaptureFixture[str]) -> None:
    seen: Counter[str] = Counter()

    @given(graphs(extra=6), st.integers(0, 2**32))
    @settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
    def ends(graph: CompiledGraph, seed: int) -> None:
        for turn in range(SEEDS):
            _count(seen, ended(graph, Random(seed + turn)))

    ends()
    told = {**dict(sorted(COVERED.items())), **dict(sorted(seen.items()))}
    with capsys.disabled():
        print(f"\ntermination: {told}")  # noqa: T201 - how much was covered is what the reader wants to see
    # Far below what any seed covers: a generator that lost its shapes would come here.
    assert len([name for name in seen if name.startswith("kind:")]) >= 12
    assert len([name for name in seen if name.startswith("interrupt:")]) >= 2
    assert seen["cycles"] >= 5
    assert seen["depth"] >= 20


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

"""The random graphs of the factory are whole and various, and no document breaks the compiler."""

import os
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from orchestrator.core.compiler.checks.graph_view import (
    build_graph_view,
    collect_reachable_nodes,
    find_cyclic_components,
)
from orchestrator.core.compiler.compiler import canonical_form, compile_graph
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.domain.graph import CompiledGraph, Interrupt
from orchestrator.core.nodes import discover_node_kinds
from tests.factories.graphs import Document, covered, document, documents, graphs
from tests.proves import proves

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
# A graph is drawn in tens of milliseconds; each run of the suite looks at others.
SOME = 300 if os.environ.get("INTERLOCK_SOAK") else 30


def test_the_factory_reaches_every_kind_and_many_cycles() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=70, deadline=None, database=None, derandomize=True, suppress_health_check=SLOW)
    @given(graphs())
    def collect(graph: CompiledGraph) -> None:
        seen.update(covered(graph))
        seen["graphs"] += 1

    collect()
    print(dict(sorted(seen.items())))  # noqa: T201 - how much was covered is what the reader wants to see
    assert [kind for kind in discover_node_kinds() if not seen[f"kind:{kind}"]] == []
    assert seen["cycles"] >= seen["graphs"] / 2
    assert len([name for name in seen if name.startswith("guard:")]) >= 6


@proves("R-GRAPH-2", part="every node can end")
@given(graphs(extra=4))
@settings(max_examples=SOME, deadline=None, suppress_health_check=SLOW)
def test_from_every_node_and_every_interrupt_an_end_can_be_reached(graph: CompiledGraph) -> None:
    ahead = build_graph_view(graph.spec, discover_node_kinds()).next_of()
    for start in (*graph.nodes, *(graph.interrupts[interrupt] for interrupt in Interrupt)):
        assert any(graph.nodes[node].kind == "terminate" for node in collect_reachable_nodes(ahead, (start,)))


@proves("R-GRAPH-2", part="no idle cycle")
@given(graphs(extra=8))
@settings(max_examples=SOME, deadline=None, suppress_health_check=SLOW)
def test_every_cycle_passes_a_node_that_starts_work(graph: CompiledGraph) -> None:
    """There the wall clock, the transitions limit and an asked cancel are looked at."""
    idle = {
        node: tuple(to for to in targets if not discover_node_kinds()[graph.nodes[to].kind].starts_work)
        for node, targets in build_graph_view(graph.spec, discover_node_kinds()).next_of().items()
    }
    event(f"tier {graph.tier}")
    assert find_cyclic_components(idle) == ()


@proves("R-GRAPH-3", part="stored form of any graph")
@given(graphs(extra=4))
@settings(max_examples=SOME, deadline=None, suppress_health_check=SLOW)
def test_the_stored_form_is_a_fixed_point(graph: CompiledGraph) -> None:
    stored = canonical_form(graph.spec)
    again = compile_graph(graph.spec.model_validate_json(stored))
    assert (again.digest, canonical_form(again.spec)) == (graph.digest, stored)


HOSTILE = st.sampled_from(
    [None, "", "x", "intake", -1, 10**30, 1.5, [], {}, {"a": 1}, [None], True, "\ud800", "A b"]
).map(deepcopy)  # a second spoiling must not change what later examples draw


@given(documents(extra=0), st.data())
@settings(max_examples=2 * SOME, deadline=None, suppress_health_check=SLOW)
def test_a_hostile_document_gets_faults_and_nothing_else(plain: Document, data: st.DataObject) -> None:
    broken = deepcopy(plain)
    for _ in range(data.draw(st.integers(1, 3))):
        _spoil(broken, data)
    with suppress(CompileFailed):
        compile_graph(broken)


def _spoil(value: Any, data: st.DataObject) -> None:
    """Put something hostile somewhere in the document."""
    while isinstance(value, dict | list) and value:
        key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            # A copy: what is put in may itself be spoilt next.
            value[key] = deepcopy(data.draw(HOSTILE))
            return
        value = inner


def test_500_nodes_in_one_line_compile_without_recursion() -> None:
    pieces = ("branch",) * 460 + ("respond",)
    assert len(compile_graph(document(*pieces)).nodes) == 483

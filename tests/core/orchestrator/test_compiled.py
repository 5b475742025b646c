"""What a compiled graph is: immutable, and the same everywhere (R-GRAPH-3); its tier and its bound."""

import json
import os
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.compiler.checks import autonomy
from orchestrator.core.compiler.checks.graph_view import build_graph_view
from orchestrator.core.compiler.compiler import canonical_form, compile_graph, transition_bound
from orchestrator.core.domain.graph import GraphSpec
from orchestrator.core.nodes import discover_node_kinds
from tests.core.orchestrator.faulty import before, numbers
from tests.factories.graphs import Document, compiled, document, documents, edge, end
from tests.proves import proves

IN_ANOTHER_PROCESS = """
import json, sys
from orchestrator.core.compiler.compiler import compile_graph
print(compile_graph(json.load(sys.stdin)).digest)
"""


@proves("R-GRAPH-3", part="same on every machine")
def test_two_processes_with_two_hash_seeds_agree() -> None:
    plain = document("tool", "act")
    digests = [_digest_with_seed(plain, seed) for seed in ("1", "2")]
    assert digests == [compile_graph(plain).digest] * 2


def _digest_with_seed(plain: Document, seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS], input=json.dumps(plain), capture_output=True, text=True,
        check=True, env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    return done.stdout.strip()


@proves("R-GRAPH-3", part="order without meaning")
@given(documents(extra=2), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_order_of_nodes_and_of_unrelated_edges_means_nothing(
    plain: Document, dice: st.DataObject
) -> None:
    shuffled = {**plain, "nodes": [*plain["nodes"]]}
    dice.shuffle(shuffled["nodes"])  # type: ignore[attr-defined]
    shuffled["edges"] = sorted(plain["edges"], key=lambda one: (one["outcome"], one["source"]))
    assert compiled(shuffled).digest == compiled(plain).digest


@proves("R-GRAPH-3", part="order with meaning")
def test_the_order_of_guards_means_something() -> None:
    first, second = document("branch", "respond"), document("branch", "respond")
    extra = [edge("branch-1", "holds", end("IMPOSSIBLE"), name) for name in ("queue_left", "step_failed")]
    first["edges"] = [*extra, *first["edges"]]
    second["edges"] = [*reversed(extra), *second["edges"]]
    assert compiled(first).digest != compiled(second).digest


@proves("R-GRAPH-3", part="stored form")
def test_the_stored_form_compiles_to_the_same_graph() -> None:
    graph = compiled(document("tool", "act"))
    again = compile_graph(GraphSpec.model_validate_json(canonical_form(graph.spec)))
    assert again.digest == graph.digest
    assert again.edges == graph.edges


@proves("R-GRAPH-3", part="immutable")
def test_nothing_can_be_added_to_a_compiled_graph() -> None:
    graph = compiled(document("tool"))
    for mapping in (graph.nodes, graph.edges, graph.edges["check"], graph.interrupts, graph.cycle_limits):
        with pytest.raises(TypeError):
            mapping["new"] = None  # type: ignore[index]
    with pytest.raises(ValueError, match="frozen"):
        graph.digest = "0" * 64  # type: ignore[misc]


@proves("R-GRAPH-8", part="derived")
@pytest.mark.parametrize(
    ("pieces", "tier"),
    [
        (("respond",), 1),
        (("respond", "respond"), 2),
        (("tool", "tool", "respond"), 2),
        (("tool", "branch", "respond"), 3),
        (("act",), 6),
        (("tool", "act"), 6),
    ],
)
def test_the_tier_is_read_off_the_graph(pieces: tuple[str, ...], tier: int) -> None:
    assert compiled(document(*pieces, choices=False)).tier == tier


@proves("R-GRAPH-8", part="tier 4")
def test_asking_again_after_a_failed_draft_makes_it_tier_4() -> None:
    plain = document("respond", choices=False)
    plain["edges"].insert(0, edge("judge", "failed", "respond-1", "repairs_left", limit=2))
    assert compiled(plain).tier == 4


@proves("R-GRAPH-8", part="tiers 5 and 7")
def test_gates_before_every_call_make_it_tier_5_and_nobody_judging_tier_7() -> None:
    gated = document("act")
    for one in gated["edges"]:
        if (one["source"], one["target"]) == ("act-1", "check"):
            one["target"] = "gate"
    spec = GraphSpec.model_validate(gated)
    assert (
        autonomy.compute_autonomy_tier(build_graph_view(spec, discover_node_kinds())) == 6
    )  # a rejected call leads back to a check that no gate precedes
    for one in gated["edges"]:
        if (
            one["source"] in ("gate", "invoke", "update", "check")
            and one["target"] == "check"
            and one["outcome"] not in ("approved", "edited")
        ):
            one["target"] = "gate"
    assert (
        autonomy.compute_autonomy_tier(
            build_graph_view(GraphSpec.model_validate(gated), discover_node_kinds())
        )
        == 5
    )
    for one in gated["nodes"]:
        if one["kind"] == "verify_output":
            one |= {"kind": "branch", "config": {"predicate": {"name": "queue_left"}}}
    assert (
        autonomy.compute_autonomy_tier(
            build_graph_view(GraphSpec.model_validate(gated), discover_node_kinds())
        )
        == 7
    )


@proves("R-GRAPH-17", part="bound")
def test_the_bound_grows_with_the_budget_and_with_the_graph() -> None:
    small, large = compiled(document("tool")), compiled(document("tool", "tool", "act"))
    tight = {"model_turns": Decimal(1), "tool_calls": Decimal(1), "retries": Decimal(0)}
    assert transition_bound(small, tight) < transition_bound(large, tight)
    assert transition_bound(small, tight) < transition_bound(small, tight | {"tool_calls": Decimal(2)})
    assert transition_bound(small, {"model_turns": None}) == transition_bound(small, {})


def test_of_two_limits_through_a_node_the_lower_holds() -> None:
    plain = document("tool")
    plain["cycles"] = [{"through": "scope", "limit": limit} for limit in (3, 2, 5)]
    assert compiled(plain).cycle_limits["scope"] == 2


@proves("R-GRAPH-2", part="all at once")
def test_all_faults_come_at_once() -> None:
    plain = document("act") | {"tier": 2, "tools": []}
    plain["nodes"].append({"id": "extra", "kind": "shell"})
    del plain["interrupts"]["unsafe"]
    before(plain, edge("init", "happy", "nowhere"))
    assert numbers(plain) == [2, 5, 8, 13, 20, 26]

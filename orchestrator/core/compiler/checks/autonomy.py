"""Checks 26 and 27: the actual tier of a graph, and the justification of a high one (R-GRAPH-8)."""

from collections.abc import Iterator

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import (
    Drawing,
    collect_reachable_nodes,
    find_cyclic_components,
    reversed_of,
    without_edges,
)
from orchestrator.core.domain.graph import EdgeSpec

CHOOSERS = ("act",)
MODELS = ("respond",)
GATES = ("approval",)
GRANTS = ("approved", "edited")
JUDGES = ("verify_output",)
# Guards that read inputs and tool facts. The others control the ladder of one call and are no decision of
# the workflow.
CHOOSING_GUARDS = ("facts", "fact_is", "fact_at_most", "intent_is", "visited_less_than")
JUSTIFIED_FROM = 5


def compute_autonomy_tier(drawing: Drawing) -> int:
    """Return the lowest tier whose rule the graph meets.

    1 one model call; 2 fixed calls in a line; 3 branches on inputs and facts; 4 a branch or bounded cycle
    depends on model output; 5 as 6 with an approval before every call; 6 a model chooses tools; 7 no node
    verifies its output.
    """
    if drawing.of_kind(*CHOOSERS):
        return _chosen_tier(drawing)
    if _depends_on_model(drawing):
        return 4
    if _has_fixed_branches(drawing):
        return 3
    return 2 if drawing.of_kind("tool") or len(drawing.of_kind(*MODELS)) > 1 else 1


def _chosen_tier(drawing: Drawing) -> int:
    if not drawing.of_kind(*JUDGES):
        return 7
    ungated = without_edges(drawing, lambda edge: _is_approval_edge(drawing, edge))
    free = collect_reachable_nodes(ungated, (node.id for node in drawing.of_kind(*CHOOSERS)))
    calls_freely = any(drawing.kind(node) == "invoke_tool" for node in free)
    return 6 if calls_freely or not drawing.of_kind(*GATES) else 5


def _is_approval_edge(drawing: Drawing, edge: EdgeSpec) -> bool:
    """Return whether a person approved on this edge; a rejection that leads on is no approval."""
    return drawing.kind(edge.source) in GATES and edge.outcome in GRANTS


def _depends_on_model(drawing: Drawing) -> bool:
    """Return whether a model call is part of a cycle, or its output selects between two paths to success."""
    writers = dict.fromkeys(node.id for node in drawing.of_kind(*MODELS))
    if any(node in writers for knot in find_cyclic_components(drawing.next_of()) for node in knot):
        return True
    useful = _find_nodes_reaching_success(drawing)
    deciders = drawing.of_kind(*MODELS, *JUDGES)
    return any(len(_list_useful_targets(drawing, node.id, useful)) > 1 for node in deciders)


def _has_fixed_branches(drawing: Drawing) -> bool:
    if drawing.of_kind("ask_user", "branch"):
        return True
    return any(guard.name in CHOOSING_GUARDS for guard, _, _ in drawing.guards())


def _list_useful_targets(drawing: Drawing, node: str, useful: dict[str, None]) -> dict[str, None]:
    return dict.fromkeys(edge.target for edge in drawing.leaving[node] if edge.target in useful)


def _find_nodes_reaching_success(drawing: Drawing) -> dict[str, None]:
    """Return the nodes from which SUCCESS can still be reached."""
    ends = (
        node.id for node in drawing.terminals() if getattr(node.config, "code", None) is TerminalCode.SUCCESS
    )
    return dict.fromkeys(collect_reachable_nodes(reversed_of(drawing.next_of()), ends))


def tier_declared(drawing: Drawing) -> Iterator[Diagnostic]:
    """26: the declared tier is not below the actual one."""
    real = compute_autonomy_tier(drawing)
    if drawing.spec.tier < real:
        yield make_diagnostic(26, f"the graph declares tier {drawing.spec.tier}, but it is of tier {real}")


def diagnose_missing_justification(drawing: Drawing) -> Iterator[Diagnostic]:
    """27: above tier 4 the workflow states why the tier below is not sufficient."""
    if drawing.spec.tier >= JUSTIFIED_FROM and not drawing.spec.justification.strip():
        yield make_diagnostic(
            27,
            f"tier {drawing.spec.tier} needs a justification: why does tier {drawing.spec.tier - 1} not do?",
        )

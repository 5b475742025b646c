"""Check 28: a call that was sent back reaches its author, who can propose another (R-APPR-3).

The gate itself bounds how often a step may be sent back (`proposals`), so a graph needs no limit for it.
"""

from collections.abc import Collection, Iterator

from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing, collect_reachable_nodes, without_edges
from orchestrator.core.compiler.checks.wiring import QUEUE_GUARD
from orchestrator.core.domain.graph import EdgeSpec, Node
from orchestrator.core.workflow.edge_guards import MODEL

OUTCOME = ("approval", "revised")
HEARS = ("act", "respond")
ASKER_GUARD = "asked_by"


def led_back(drawing: Drawing) -> Iterator[Diagnostic]:
    """28: the edge of a call that was sent back leads to the author of the call.

    A model is shown the comment as it continues. A call of the workflow is requested again, after a model
    has written a new draft for it.
    """
    told: dict[str, set[str]] = {}
    for edge in drawing.edges:
        if (drawing.kind(edge.source), edge.outcome) != OUTCOME:
            continue
        before = told.setdefault(edge.source, set())
        for asker in _list_possible_requesters(drawing, edge):
            if asker not in before and (sentence := _explain_missing_feedback_path(drawing, edge, asker)):
                yield make_diagnostic(28, sentence, edge=edge)
        if edge.guard is not None and edge.guard.name == ASKER_GUARD:
            before.add(str(edge.guard.parameters.get("node")))


def _list_possible_requesters(drawing: Drawing, edge: EdgeSpec) -> tuple[str, ...]:
    """Return the authors whose calls may take the edge, as far as its guard shows."""
    guard = edge.guard
    if guard is not None and guard.name == ASKER_GUARD:
        return (str(guard.parameters.get("node")),)
    model = (MODEL,) if drawing.of_kind("act") else ()
    if guard is not None and guard.name == QUEUE_GUARD:
        # Only a model's reply holds several calls.
        return model
    ways = drawing.next_of()
    fixed = drawing.of_kind("tool")
    return (*model, *(node.id for node in fixed if edge.source in collect_reachable_nodes(ways, (node.id,))))


def _explain_missing_feedback_path(drawing: Drawing, edge: EdgeSpec, asker: str) -> str:
    """Explain why the comment does not reach the author; "" if it does."""
    ahead = collect_reachable_nodes(drawing.next_of(), (edge.target,))
    if asker == MODEL:
        asks = any(drawing.kind(node) == "act" for node in ahead)
        return (
            "" if asks and edge.source in ahead else f"no way leads from {edge.target} to a model that asks"
        )
    node = drawing.nodes.get(asker)
    if node is None or asker not in ahead or edge.source not in ahead:
        return f"no way leads from {edge.target} back to {asker} and {edge.source}"
    if asker in _find_nodes_before_feedback(drawing, edge.target):
        return f"from {edge.target} the call of {asker} comes back and no model was told"
    return "" if _made_of_a_draft(node) else f"what {asker} asks for does not depend on what a model writes"


def _find_nodes_before_feedback(drawing: Drawing, start: str) -> Collection[str]:
    return collect_reachable_nodes(
        without_edges(drawing, lambda edge: drawing.kind(edge.source) in HEARS), (start,)
    )


def _made_of_a_draft(node: Node) -> bool:
    """Return whether an argument is the draft; other checks report unreadable arguments."""
    arguments = getattr(node.config, "arguments", None)
    return arguments is None or any(source.source == "draft" for source in arguments.values())

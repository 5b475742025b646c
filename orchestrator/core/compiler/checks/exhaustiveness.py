"""Checks 7 to 10: every outcome leads somewhere, whatever the guards say."""

from collections.abc import Iterator

from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing
from orchestrator.core.domain.graph import EdgeSpec


def ways_out(drawing: Drawing) -> Iterator[Diagnostic]:
    """7: only a terminal node has no way out."""
    for node in drawing.nodes.values():
        if drawing.kinds[node.kind].outcomes and not drawing.leaving[node.id]:
            yield make_diagnostic(7, f"node {node.id} ({node.kind}) has no way out", node=node.id)


def own_outcomes(drawing: Drawing) -> Iterator[Diagnostic]:
    """8: an edge leaves for an outcome that its node's kind has."""
    for edge in drawing.spec.edges:
        if edge.source not in drawing.nodes:
            continue
        kind = drawing.kind(edge.source)
        if edge.outcome not in drawing.kinds[kind].outcomes:
            yield make_diagnostic(8, f"node {edge.source} ({kind}) has no outcome {edge.outcome}", edge=edge)


def answered_outcomes(drawing: Drawing) -> Iterator[Diagnostic]:
    """9: every outcome of a node has an edge, but for those that its kind can do without."""
    grouped = _edges_by_source(drawing)
    for node in drawing.nodes.values():
        named = dict.fromkeys(edge.outcome for edge in grouped[node.id])
        kind = drawing.kinds[node.kind]
        for outcome in kind.outcomes:
            if outcome not in named and outcome not in kind.optional:
                yield make_diagnostic(
                    9, f"node {node.id} ({node.kind}): no edge for the outcome {outcome}", node=node.id
                )


def closed_outcomes(drawing: Drawing) -> Iterator[Diagnostic]:
    """10: of the edges of one outcome the last has no guard, and only the last. An outcome that its kind can
    do without may have guarded ones alone: where none holds, the kind does not end so."""
    for node, edges in _edges_by_source(drawing).items():
        by_outcome: dict[str, list[EdgeSpec]] = {}
        for edge in edges:
            by_outcome.setdefault(edge.outcome, []).append(edge)
        for outcome, (*earlier, last) in by_outcome.items():
            if last.guard is not None and outcome not in drawing.kinds[drawing.kind(node)].optional:
                sentence = f"{node}.{outcome}: the last edge must have no guard, or nothing may hold"
                yield make_diagnostic(10, sentence, edge=last)
            for edge in earlier:
                if edge.guard is None:
                    sentence = f"{node}.{outcome}: no edge after the unguarded one can ever be taken"
                    yield make_diagnostic(10, sentence, edge=edge)


def _edges_by_source(drawing: Drawing) -> dict[str, list[EdgeSpec]]:
    """The document's edges by node, those with an unknown target too: their outcome has an edge all the
    same.
    """
    found: dict[str, list[EdgeSpec]] = {node: [] for node in drawing.nodes}
    for edge in drawing.spec.edges:
        if edge.source in found:
            found[edge.source].append(edge)
    return found

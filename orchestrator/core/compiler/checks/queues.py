"""Check 31: whoever is asked is asked in a queue that people have."""

from collections.abc import Iterator

from orchestrator.core.approval.named_queues import queue_of_node
from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing
from tenancy.core.queues import unknown_queue_sentence


def known_queues(drawing: Drawing) -> Iterator[Diagnostic]:
    """31: the queue that a node names is one of the tenant's open ones."""
    for node in drawing.spec.nodes:
        named = queue_of_node(node.kind, node.config)
        if drawing.queues is not None and named and named not in drawing.queues:
            yield make_diagnostic(31, f"node {node.id}: {unknown_queue_sentence(named)}", node=node.id)

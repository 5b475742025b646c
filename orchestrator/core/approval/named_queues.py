"""The queues that workflows, boundaries and tools name."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.core.domain.boundary import Boundary

REVIEW_TOOL: Final = "review.request"


def queue_of_node(kind: str, config: Mapping[str, Any]) -> str:
    """Return the queue that a node of a workflow's document names, or "": an approval's, or that of a fixed
    request for a review."""
    found: Any = config.get("queue") if kind == "approval" else None
    if kind == "tool" and config.get("tool") == REVIEW_TOOL:
        arguments = config.get("arguments")
        source = arguments.get("queue") if isinstance(arguments, Mapping) else None
        if isinstance(source, Mapping) and source.get("from") == "constant":
            found = source.get("value")
    return found if isinstance(found, str) else ""


def queues_of_workflow(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the queues that the nodes of a published workflow's document name."""
    nodes = document.get("nodes", ())
    named = {queue_of_node(str(node.get("kind")), node.get("config", {})) for node in nodes}
    return frozenset(named - {""})


def queues_of_boundary(boundary: Boundary) -> Iterator[tuple[str, str]]:
    """Yield the queues that a boundary names, each with the pointer to it in its document."""
    for reason, queue in boundary.escalation_routes.items():
        yield "/escalation_routes/" + reason.replace("~", "~0").replace("/", "~1"), queue

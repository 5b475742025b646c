"""Check 28: what people send back comes back to them, and only once somebody has heard what they said
(R-APPR-3).

How often a step may be sent back is bounded by the gate itself (`proposals`): a graph needs no limit for it.
"""

from collections.abc import Iterator

from orchestrator.core.checks.drawing import Drawing, reached, without_edges
from orchestrator.core.checks.fault import Fault, fault
from orchestrator.core.checks.wiring import QUEUE_GUARD

OUTCOME = ("approval", "revised")
HEARS = ("act", "respond")


def led_back(drawing: Drawing) -> Iterator[Fault]:
    """28: from an edge for what is sent back, its gate can be reached again, and not past every model."""
    ways = drawing.next_of()
    deaf = without_edges(drawing, lambda edge: drawing.kind(edge.source) in HEARS)
    for edge in drawing.edges:
        if (drawing.kind(edge.source), edge.outcome) != OUTCOME:
            continue
        if edge.source not in reached(ways, (edge.target,)):
            yield fault(28, f"no way leads from {edge.target} back to {edge.source}", edge=edge)
        elif edge.guard is not None and edge.guard.name == QUEUE_GUARD:
            # The next call of the same reply: whoever asked for it has not been told yet.
            continue
        elif edge.source in reached(deaf, (edge.target,)):
            sentence = f"from {edge.target} the call comes back to {edge.source} and no model was told"
            yield fault(28, sentence, edge=edge)

"""Checks 11 to 13: everything can be reached, everything can end, interrupts end straight."""

from collections.abc import Iterator

from orchestrator.core.compiler.checks.diagnostics import Fault, fault
from orchestrator.core.compiler.checks.graph_view import Drawing, reached, reversed_of
from orchestrator.core.domain.graph import Interrupt

# After an interrupt no second one is taken by a node, so nothing behind it may start work or wait.
STRAIGHT = ("branch", "finalize")


def reachable(drawing: Drawing) -> Iterator[Fault]:
    """11: no node stands apart."""
    starts = [
        start for start in (drawing.spec.entry, *drawing.spec.interrupts.values()) if start in drawing.nodes
    ]
    met = dict.fromkeys(reached(drawing.next_of(), starts))
    for node in drawing.nodes:
        if node not in met:
            yield fault(11, f"node {node} cannot be reached from the entry or an interrupt", node=node)


def ending(drawing: Drawing) -> Iterator[Fault]:
    """12: from every node a terminal node can be reached."""
    backwards = reversed_of(drawing.next_of())
    ends = dict.fromkeys(reached(backwards, (node.id for node in drawing.terminals())))
    for node in drawing.nodes.values():
        if node.id not in ends and drawing.leaving[node.id]:
            yield fault(12, f"no terminal node can be reached from {node.id}", node=node.id)


def interrupts(drawing: Drawing) -> Iterator[Fault]:
    """13: each of the eight interrupts leads to a terminal node, and to nothing else that works or waits."""
    for interrupt in Interrupt:
        target = drawing.spec.interrupts.get(interrupt)
        if target is None:
            yield fault(13, f"interrupt {interrupt.value} leads nowhere")
        elif target in drawing.nodes:
            terminals, others = drawing.straight_ends(target, STRAIGHT)
            for other in others:
                sentence = (
                    f"interrupt {interrupt.value} reaches {other}: {drawing.kind(other)} works or waits"
                )
                yield fault(13, sentence, node=other)
            if not terminals and not others:
                yield fault(13, f"interrupt {interrupt.value} reaches no terminal node", node=target)

"""Checks 11 to 13: everything can be reached, everything can end, interrupts end straight."""

from collections.abc import Iterator

from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing, collect_reachable_nodes, reversed_of
from orchestrator.core.domain.graph import Interrupt

# After an interrupt no second one is taken by a node, so nothing behind it may start work or wait.
STRAIGHT = ("branch", "finalize")


def diagnose_unreachable_nodes(drawing: Drawing) -> Iterator[Diagnostic]:
    """11: every node can be reached from the entry or from an interrupt."""
    starts = [
        start for start in (drawing.spec.entry, *drawing.spec.interrupts.values()) if start in drawing.nodes
    ]
    met = dict.fromkeys(collect_reachable_nodes(drawing.next_of(), starts))
    for node in drawing.nodes:
        if node not in met:
            yield make_diagnostic(
                11, f"node {node} cannot be reached from the entry or an interrupt", node=node
            )


def diagnose_dead_ends(drawing: Drawing) -> Iterator[Diagnostic]:
    """12: from every node a terminal node can be reached."""
    backwards = reversed_of(drawing.next_of())
    ends = dict.fromkeys(collect_reachable_nodes(backwards, (node.id for node in drawing.terminals())))
    for node in drawing.nodes.values():
        if node.id not in ends and drawing.leaving[node.id]:
            yield make_diagnostic(12, f"no terminal node can be reached from {node.id}", node=node.id)


def diagnose_interrupt_targets(drawing: Drawing) -> Iterator[Diagnostic]:
    """13: each of the eight interrupts leads to a terminal node, and to nothing else that works or waits."""
    for interrupt in Interrupt:
        target = drawing.spec.interrupts.get(interrupt)
        if target is None:
            yield make_diagnostic(13, f"interrupt {interrupt.value} leads nowhere")
        elif target in drawing.nodes:
            terminals, others = drawing.straight_ends(target, STRAIGHT)
            for other in others:
                sentence = (
                    f"interrupt {interrupt.value} reaches {other}: {drawing.kind(other)} works or waits"
                )
                yield make_diagnostic(13, sentence, node=other)
            if not terminals and not others:
                yield make_diagnostic(
                    13, f"interrupt {interrupt.value} reaches no terminal node", node=target
                )

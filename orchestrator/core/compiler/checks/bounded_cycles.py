"""Check 14: every cycle uses something up (R-GRAPH-2, R-GRAPH-17).

A move uses something up when it leaves a model turn, a dispatched call or a person's answer behind it, when
it enters a node with a declared limit, or when it goes on with a queue that only gets shorter. A cycle
without such a move could turn for ever within one commit.
"""

from collections.abc import Iterator

from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing, find_cyclic_components, without_edges
from orchestrator.core.domain.graph import EdgeSpec

ALWAYS_SPENDS = ("act", "respond")
ASKS_A_PERSON = ("approval", "ask_user")
SPENDS_BY_OUTCOME = {"invoke_tool": ("dispatched",)}
FILLS_QUEUE = ("tool",)
QUEUE_GUARD = "queue_left"
QUEUE_TAKER = "check_tool"


def diagnose_unbounded_cycles(drawing: Drawing) -> Iterator[Diagnostic]:
    """14: no cycle without a retry limit, a budget limit or an escalation exit; no limit where none is
    looked at.
    """
    yield from _idle_limits(drawing)
    for knot in _find_unbounded_cycles(drawing):
        way = " -> ".join(knot)
        sentence = f"the cycle {way} has no limit: spend a budget, ask a person, or declare a cycle limit"
        yield make_diagnostic(14, sentence, node=knot[0])


def _idle_limits(drawing: Drawing) -> Iterator[Diagnostic]:
    """A limit is looked at where work starts; declared elsewhere it would hold nothing back."""
    for limit in drawing.spec.cycles:
        node = drawing.nodes.get(limit.through)
        if node is not None and not drawing.kinds[node.kind].starts_work:
            sentence = f"cycle limit through {node.id}: {node.kind} starts no work, so it would not hold"
            yield make_diagnostic(14, sentence, node=node.id)


def _find_unbounded_cycles(drawing: Drawing) -> Iterator[tuple[str, ...]]:
    limits = dict.fromkeys(
        limit.through
        for limit in drawing.spec.cycles
        if limit.through in drawing.nodes and drawing.kinds[drawing.kind(limit.through)].starts_work
    )
    free = without_edges(drawing, lambda edge: _is_spending_edge(drawing, edge) or edge.target in limits)
    shorter = without_edges(
        drawing,
        lambda edge: _is_spending_edge(drawing, edge) or edge.target in limits or _takes_one(drawing, edge),
    )
    for knot in find_cyclic_components(free):
        if any(drawing.kind(node) in FILLS_QUEUE for node in knot):
            yield knot
        else:
            within = {node: tuple(to for to in shorter[node] if to in knot) for node in knot}
            yield from find_cyclic_components(within)


def _is_spending_edge(drawing: Drawing, edge: EdgeSpec) -> bool:
    kind = drawing.kind(edge.source)
    if kind in ALWAYS_SPENDS or kind in ASKS_A_PERSON:
        return True
    return edge.outcome in SPENDS_BY_OUTCOME.get(kind, ())


def _takes_one(drawing: Drawing, edge: EdgeSpec) -> bool:
    """The next call of a queue that nothing in this cycle fills: at most as often as one reply has calls."""
    guarded = edge.guard is not None and edge.guard.name == QUEUE_GUARD
    return guarded and drawing.kind(edge.target) == QUEUE_TAKER

"""The findings of the checks: a numbered rule, its location, and the change to make (R-GRAPH-2)."""

from types import MappingProxyType

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.graph import EdgeSpec

RULES = MappingProxyType(
    {
        0: "document",
        1: "unique-ids",
        2: "known-kind",
        3: "config",
        4: "guard",
        5: "known-node",
        6: "one-entry",
        7: "way-out",
        8: "own-outcome",
        9: "outcome-without-edge",
        10: "outcome-closed",
        11: "reachable",
        12: "terminal-reachable",
        13: "interrupt",
        14: "cycle-limit",
        15: "terminal-writes",
        16: "explicit-ends",
        17: "fitting-code",
        18: "wiring",
        19: "verified-success",
        20: "tool-permission",
        21: "tool-schema",
        22: "tool-budget",
        23: "tool-timeout",
        24: "tool-verification",
        25: "prompt",
        26: "tier",
        27: "justification",
        28: "sent-back",
        29: "untrusted-input",
        30: "schema",
        31: "queue",
    }
)


class Diagnostic(FrozenModel):
    """One fault. `node` and `edge` give its location, if it has one; `rule` is the name of the number."""

    number: int
    rule: str
    node: str | None = None
    edge: str | None = None
    sentence: str


def make_diagnostic(
    number: int, sentence: str, *, node: str | None = None, edge: EdgeSpec | None = None
) -> Diagnostic:
    """Build a fault of rule `number`; an edge also sets its source node."""
    place = node if edge is None else edge.source
    return Diagnostic(
        number=number,
        rule=RULES[number],
        node=place,
        edge=format_edge(edge) if edge is not None else None,
        sentence=sentence,
    )


def format_edge(edge: EdgeSpec) -> str:
    """Format the edge for people: ``check.denied [queue_left] -> check``."""
    guard = f" [{edge.guard.name}]" if edge.guard is not None else ""
    return f"{edge.source}.{edge.outcome}{guard} -> {edge.target}"

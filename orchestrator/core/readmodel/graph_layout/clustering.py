"""Content of a drawing: the nodes of a graph, or its phases if there are too many nodes to read."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from orchestrator.core.domain.graph import GraphSpec, NodeSpec

LARGEST: Final = 200
PHASES: Final[Mapping[str, tuple[str, ...]]] = {
    "intake": ("goal_intake", "classify_intent", "resolve_scope", "init_state"),
    "planning": ("plan", "validate_plan", "select_action", "critique", "repair", "compress"),
    "calling": (
        "check_tool",
        "invoke_tool",
        "capture_observation",
        "verify_observation",
        "update_state",
        "tool",
    ),
    "thinking": ("act", "respond", "branch", "check_completion", "open_lanes", "join_lanes"),
    "people": ("approval", "ask_user", "escalate"),
    "answering": ("synthesize", "verify_output", "finalize"),
    "ends": ("terminate",),
}
PHASE_OF: Final = {kind: phase for phase, kinds in PHASES.items() for kind in kinds}

Pair = tuple[str, str]


class Spot(NamedTuple):
    """A node as it will be drawn."""

    kind: str
    interrupts: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


class Sketch(NamedTuple):
    """The content of a drawing in the document's order.

    It holds the nodes, and the outcomes of each pair of nodes that an edge connects.
    """

    entry: str
    nodes: Mapping[str, Spot]
    outcomes: Mapping[Pair, tuple[str, ...]]
    guarded: tuple[Pair, ...]

    def label(self, pair: Pair) -> str:
        """Return the outcomes of a pair as one text."""
        return ", ".join(self.outcomes[pair])


def cluster_graph(spec: GraphSpec) -> Sketch:
    """Return the graph, its phases' connected parts, or its phases: the first with at most 200 boxes.

    Nodes and edges that refer to nothing known are left out, because a faulty graph may be drawn too.
    """
    nodes = {node.id: node for node in spec.nodes}
    if len(nodes) <= LARGEST:
        return _build_sketch(spec, nodes, {node: node for node in nodes})
    parts = _assign_phase_parts(spec, nodes)
    if len(dict.fromkeys(parts.values())) > LARGEST:
        parts = {node.id: _get_node_phase(node) for node in nodes.values()}
    return _build_sketch(spec, nodes, parts)


def _build_sketch(spec: GraphSpec, nodes: Mapping[str, NodeSpec], box_of: Mapping[str, str]) -> Sketch:
    members: dict[str, list[str]] = {}
    for node in nodes:
        members.setdefault(box_of[node], []).append(node)
    interrupts: dict[str, list[str]] = {}
    for interrupt, target in spec.interrupts.items():
        if target in nodes:
            interrupts.setdefault(box_of[target], []).append(interrupt.value)
    spots = {
        box: Spot(
            nodes[inside[0]].kind if inside == [box] else "group",
            tuple(interrupts.get(box, ())),
            () if inside == [box] else tuple(inside),
        )
        for box, inside in members.items()
    }
    outcomes: dict[Pair, dict[str, None]] = {}
    guarded: dict[Pair, None] = {}
    for edge in spec.edges:
        if edge.source not in nodes or edge.target not in nodes:
            continue
        pair = (box_of[edge.source], box_of[edge.target])
        if pair[0] == pair[1] and edge.source != edge.target:
            continue
        outcomes.setdefault(pair, {})[edge.outcome] = None
        if edge.guard is not None:
            guarded[pair] = None
    entry = box_of.get(spec.entry, next(iter(spots), ""))
    return Sketch(entry, spots, {pair: tuple(held) for pair, held in outcomes.items()}, tuple(guarded))


def _get_node_phase(node: NodeSpec) -> str:
    return PHASE_OF.get(node.kind, "other")


def _assign_phase_parts(spec: GraphSpec, nodes: Mapping[str, NodeSpec]) -> dict[str, str]:
    """Map each node to its phase, numbered by the connected parts of the phase."""
    root = {node: node for node in nodes}

    def top(node: str) -> str:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for edge in spec.edges:
        if edge.source in nodes and edge.target in nodes:
            one, other = top(edge.source), top(edge.target)
            if one != other and _get_node_phase(nodes[one]) == _get_node_phase(nodes[other]):
                root[other] = one
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for node in nodes:
        held = top(node)
        if held not in names:
            phase = _get_node_phase(nodes[held])
            counts[phase] = counts.get(phase, 0) + 1
            names[held] = f"{phase} {counts[phase]}"
    found = {node: names[top(node)] for node in nodes}
    sizes = Counter(found.values())
    return {node: node if sizes[part] == 1 else part for node, part in found.items()}

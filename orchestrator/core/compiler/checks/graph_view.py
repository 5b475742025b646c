"""A graph as the checks look at it: as far as it can be read, with the walks they share.

A document with an unknown kind or target still gets every other check, so that all faults come at once
(R-GRAPH-2).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import EdgeSpec, GraphSpec, GuardSpec, Node
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import NodeKind

Neighbours = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """`nodes` are those of a known kind, each with its parsed config or None; `edges` those between such
    nodes.

    `misfits` are the faults of configs: (node id, sentence). `tools`, `boundary`, `prompts` and `queues`
    are None where the caller does not know them; what depends on them is then left to the publication,
    which does.
    """

    spec: GraphSpec
    kinds: Mapping[str, NodeKind]
    nodes: Mapping[str, Node]
    edges: tuple[EdgeSpec, ...]
    leaving: Mapping[str, tuple[EdgeSpec, ...]]
    ahead: Neighbours
    misfits: tuple[tuple[str, str], ...]
    tools: Mapping[str, ToolSpec] | None = None
    boundary: Boundary | None = None
    prompts: Collection[str] | None = None
    queues: Collection[str] | None = None

    def kind(self, node: str) -> str:
        """The name of a node's kind."""
        return self.nodes[node].kind

    def of_kind(self, *kinds: str) -> tuple[Node, ...]:
        """The nodes of these kinds, in the document's order."""
        return tuple(node for node in self.nodes.values() if node.kind in kinds)

    def terminals(self) -> tuple[Node, ...]:
        """The nodes of kinds without an outcome."""
        return tuple(node for node in self.nodes.values() if not self.kinds[node.kind].outcomes)

    def guards(self) -> tuple[tuple[GuardSpec, str, EdgeSpec | None], ...]:
        """Every guard with the node and, where it stands on one, the edge."""
        on_edges = ((edge.guard, edge.source, edge) for edge in self.spec.edges if edge.guard is not None)
        in_nodes = (
            (node.config.predicate, node.id, None)
            for node in self.nodes.values()
            if isinstance(getattr(node.config, "predicate", None), GuardSpec)
        )
        return (*on_edges, *in_nodes)

    def next_of(self) -> Neighbours:
        """Each node with the nodes its edges lead to."""
        return self.ahead

    def straight_ends(self, start: str, straight: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """From `start` on through `straight` kinds: the terminals reached, and the first nodes of other
        kinds.
        """
        met: dict[str, None] = {start: None} if start in self.nodes else {}
        waiting = list(met)
        while waiting:
            node = waiting.pop()
            for target in self.ahead[node] if self.kind(node) in straight else ():
                if target not in met:
                    met[target] = None
                    waiting.append(target)
        terminals = tuple(node for node in met if not self.kinds[self.kind(node)].outcomes)
        others = (node for node in met if self.kind(node) not in straight and node not in terminals)
        return terminals, tuple(others)


def build_graph_view(
    spec: GraphSpec,
    kinds: Mapping[str, NodeKind],
    tools: Mapping[str, ToolSpec] | None = None,
    boundary: Boundary | None = None,
    prompts: Collection[str] | None = None,
    queues: Collection[str] | None = None,
) -> Drawing:
    """Read what can be read. Of two nodes with one id the first counts."""
    nodes: dict[str, Node] = {}
    misfits: list[tuple[str, str]] = []
    for node in spec.nodes:
        if node.kind in kinds and node.id not in nodes:
            config, faults = _validate_node_config(kinds[node.kind], node.config)
            nodes[node.id] = Node(id=node.id, kind=node.kind, config=config)
            misfits.extend((node.id, sentence) for sentence in faults)
    edges = tuple(edge for edge in spec.edges if edge.source in nodes and edge.target in nodes)
    found: dict[str, list[EdgeSpec]] = {node: [] for node in nodes}
    for edge in edges:
        found[edge.source].append(edge)
    leaving = {node: tuple(own) for node, own in found.items()}
    ahead = {node: tuple(edge.target for edge in own) for node, own in leaving.items()}
    return Drawing(
        spec=spec, kinds=kinds, nodes=nodes, edges=edges, leaving=leaving, ahead=ahead,
        misfits=tuple(misfits), tools=tools, boundary=boundary, prompts=prompts, queues=queues, )  # fmt: skip


def _validate_node_config(kind: NodeKind, raw: Mapping[str, Any]) -> tuple[Any, list[str]]:
    try:
        return kind.config.model_validate(raw), []
    except ValidationError as error:
        return None, [
            f"{'.'.join(map(str, found['loc'])) or 'config'}: {found['msg']}"
            for found in error.errors(include_url=False, include_input=False, include_context=False)
        ]


def collect_reachable_nodes(neighbours: Neighbours, starts: Iterable[str]) -> tuple[str, ...]:
    """Everything that can be reached from `starts`, these included, in the order of discovery."""
    found: dict[str, None] = dict.fromkeys(starts)
    waiting = list(found)
    while waiting:
        for target in neighbours.get(waiting.pop(), ()):
            if target not in found:
                found[target] = None
                waiting.append(target)
    return tuple(found)


def reversed_of(neighbours: Neighbours) -> Neighbours:
    """The same arrows the other way round."""
    back: dict[str, list[str]] = {node: [] for node in neighbours}
    for node, targets in neighbours.items():
        for target in targets:
            back.setdefault(target, []).append(node)
    return {node: tuple(sources) for node, sources in back.items()}


def find_cyclic_components(neighbours: Neighbours) -> tuple[tuple[str, ...], ...]:
    """The sets of nodes that can all reach each other by at least one move: where cycles are (iterative
    Tarjan).
    """
    search = _Search(neighbours)
    for node in neighbours:
        search.visit(node)
    return tuple(knot for knot in search.found if len(knot) > 1 or knot[0] in neighbours[knot[0]])


class _Search:
    """Tarjan's strongly connected components without recursion: a graph may hold 500 nodes in one line."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.neighbours = neighbours
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.stack: dict[str, None] = {}
        self.found: list[tuple[str, ...]] = []

    def visit(self, start: str) -> None:
        """Explore everything behind `start` that is still unknown."""
        if start in self.index:
            return
        trail = [(start, iter(self.neighbours.get(start, ())))]
        self._meet(start)
        while trail:
            node, targets = trail[-1]
            target = next(targets, None)
            if target is None:
                trail.pop()
                self._close(node, trail[-1][0] if trail else None)
            elif target not in self.index:
                self._meet(target)
                trail.append((target, iter(self.neighbours.get(target, ()))))
            elif target in self.stack:
                self.low[node] = min(self.low[node], self.index[target])

    def _meet(self, node: str) -> None:
        self.index[node] = self.low[node] = len(self.index)
        self.stack[node] = None

    def _close(self, node: str, parent: str | None) -> None:
        if parent is not None:
            self.low[parent] = min(self.low[parent], self.low[node])
        if self.low[node] != self.index[node]:
            return
        members: list[str] = []
        while node in self.stack:
            members.append(self.stack.popitem()[0])
        self.found.append(tuple(reversed(members)))


def without_edges(drawing: Drawing, dropped: Callable[[EdgeSpec], bool]) -> Neighbours:
    """Each node with where its edges lead, leaving out those that `dropped` names."""
    return {
        node: tuple(edge.target for edge in edges if not dropped(edge))
        for node, edges in drawing.leaving.items()
    }

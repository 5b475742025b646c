"""Ranks, joints and chains: the graph made acyclic and cut into links between neighbouring ranks."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from orchestrator.core.readmodel.graph_layout.clustering import Pair, Sketch


class Part(NamedTuple):
    """A node (`real`), or the joint of a rank in the trunk that leads to (or, `up`, back to) a node."""

    node: str
    rank: int
    real: bool
    up: bool = False


class Link(NamedTuple):
    """A piece of one or more edges between the parts of two neighbouring ranks; what goes `up` keeps its
    own way."""

    upper: int
    lower: int
    up: bool


class Plan(NamedTuple):
    """A sketch cut into links. Parts and links are known by their place in `parts` and `links`.

    `chains` hold the links of each edge from top to bottom, also of an edge that goes `back`; `above` and
    `below` the links at each side of each part.
    """

    sketch: Sketch
    parts: Sequence[Part]
    links: Sequence[Link]
    layers: Sequence[Sequence[int]]
    chains: Mapping[Pair, Sequence[int]]
    back: Mapping[Pair, bool]
    loops: Mapping[str, None]
    above: Sequence[Sequence[int]]
    below: Sequence[Sequence[int]]


def build_layer_plan(sketch: Sketch) -> Plan:
    """Rank the nodes and cut the edges."""
    successors: dict[str, list[str]] = {node: [] for node in sketch.nodes}
    for source, target in sketch.outcomes:
        if source != target:
            successors[source].append(target)
    back = _find_back_edges(sketch, successors)
    ranks = _assign_ranks(sketch, _reverse_back_edges(sketch, back))
    cut = _Cut(ranks)
    chains = {pair: cut.chain(pair, back.get(pair, False)) for pair in sketch.outcomes}
    parts, links = list(cut.parts), list(cut.links)
    layers: list[list[int]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for at, part in enumerate(parts):
        layers[part.rank].append(at)
    above: list[list[int]] = [[] for _ in parts]
    below: list[list[int]] = [[] for _ in parts]
    for at, link in enumerate(links):
        below[link.upper].append(at)
        above[link.lower].append(at)
    loops = dict.fromkeys(source for source, target in sketch.outcomes if source == target)
    return Plan(
        sketch=sketch, parts=parts, links=links, layers=layers, chains=chains, back=back, loops=loops,
        above=above, below=below,
    )  # fmt: skip


class _Cut:
    """Numbers the parts and links as they are first met."""

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self.ranks = ranks
        self.parts = {Part(node, rank, True): at for at, (node, rank) in enumerate(ranks.items())}
        self.links: dict[Link, int] = {}

    def chain(self, pair: Pair, back: bool) -> tuple[int, ...]:
        """The links of an edge; joints are shared by all edges into one node."""
        top, bottom = (pair[1], pair[0]) if back else pair
        if top == bottom:
            return ()
        first, last = self.ranks[top], self.ranks[bottom]
        steps = [
            self._part(Part(top, first, True)),
            *[self._part(Part(pair[1], rank, False, back)) for rank in range(first + 1, last)],
            self._part(Part(bottom, last, True)),
        ]
        links = self.links
        return tuple([links.setdefault(Link(one, other, back), len(links)) for one, other in pairwise(steps)])

    def _part(self, part: Part) -> int:
        return self.parts.setdefault(part, len(self.parts))


def _find_back_edges(sketch: Sketch, successors: Mapping[str, Sequence[str]]) -> dict[Pair, bool]:
    """Which edges close a cycle in a walk from the entry, of all but loops."""
    back: dict[Pair, bool] = {}
    open_: dict[str, bool] = {}
    for start in (sketch.entry, *sketch.nodes):
        if start not in sketch.nodes or start in open_:
            continue
        stack = [(start, iter(successors[start]))]
        open_[start] = True
        while stack:
            node, following = stack[-1]
            for target in following:
                back[node, target] = open_.get(target, False)
                if target not in open_:
                    open_[target] = True
                    stack.append((target, iter(successors[target])))
                    break
            else:
                open_[node] = False
                stack.pop()
    return back


def _reverse_back_edges(sketch: Sketch, back: Mapping[Pair, bool]) -> dict[str, list[str]]:
    """The successors, with what closes a cycle turned around."""
    ahead: dict[str, list[str]] = {node: [] for node in sketch.nodes}
    for (source, target), closes in back.items():
        if not closes:
            ahead[source].append(target)
        elif back.get((target, source), True):
            ahead[target].append(source)
    return ahead


def _assign_ranks(sketch: Sketch, ahead: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The longest path from a beginning; what nothing leads to but an interrupt stands at the bottom."""
    waiting = dict.fromkeys(sketch.nodes, 0)
    for targets in ahead.values():
        for target in targets:
            waiting[target] += 1
    lone = [node for node in sketch.nodes if not waiting[node] and not ahead[node] and node != sketch.entry]
    ranks = dict.fromkeys(sketch.nodes, 0)
    free = [node for node, count in waiting.items() if not count]
    while free:
        node = free.pop()
        for target in ahead[node]:
            ranks[target] = max(ranks[target], ranks[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                free.append(target)
    return _adjust_source_ranks(ranks, ahead, lone, sketch)


def _adjust_source_ranks(
    ranks: dict[str, int], ahead: Mapping[str, Sequence[str]], lone: Sequence[str], sketch: Sketch
) -> dict[str, int]:
    """Beginnings that are not the entry stand just above what they lead to."""
    bottom = max(ranks.values(), default=0)
    for node in lone:
        ranks[node] = bottom
    entered = dict.fromkeys(target for targets in ahead.values() for target in targets)
    for node in sketch.nodes:
        if node != sketch.entry and node not in entered and ahead[node]:
            ranks[node] = max(0, min(ranks[target] for target in ahead[node]) - 1)
    return ranks

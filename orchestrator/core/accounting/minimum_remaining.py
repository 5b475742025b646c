"""Compute a lower bound of what any path from a node to a result uses, from the graph (R-BUDGET-4).

All calls share one chain of nodes, so a place is a node together with the node that asked for the call there:
an edge for one asker only is followed for that asker alone. Each dimension has its own cheapest path. Guards
that depend on the run's facts are left open, so the bound is never too high.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from orchestrator.core.accounting.effect_cost import ONE, call_reserve
from orchestrator.core.common.run_status import ENDINGS, TerminalClass
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.tool_spec import ToolSpec

Place = tuple[str, str]
DIMENSIONS = ("steps", "model_turns", "tool_calls", "external_calls", "side_effects", "granted_side_effects")
MODEL = "model"
_MOST = 64


def least_rest(graph: CompiledGraph, pins: Pins, node: str, asker: str) -> Mapping[str, Decimal]:
    """Return the least amounts from `node` to a result, its own work included.

    Empty if no result can be reached any more.
    """
    return _get_path_map(graph, pins).least((node, asker))


@dataclass(frozen=True, slots=True)
class _MapKey:
    """The key of a path map. Two keys are equal if graph and tools have the same digests."""

    digests: tuple[str, str]
    graph: CompiledGraph = field(compare=False, repr=False)
    pins: Pins = field(compare=False, repr=False)


def _get_path_map(graph: CompiledGraph, pins: Pins) -> "_PathMap":
    """Return a graph's path map under these tools; neither ever changes."""
    return _build_path_map(_MapKey((graph.digest, pins.registry_digest), graph, pins))


# Called by many threads at once: lru_cache is thread-safe.
@lru_cache(maxsize=_MOST)
def _build_path_map(of: _MapKey) -> "_PathMap":
    return _PathMap(of.graph, of.pins)


class _PathMap:
    """The cheapest paths of one graph under one set of tools."""

    def __init__(self, graph: CompiledGraph, pins: Pins) -> None:
        self.graph = graph
        self.tools = {
            node.id: spec
            for node in graph.nodes.values()
            if node.kind == "tool" and (spec := pins.by_name.get(node.config.tool)) is not None
        }
        self.by_name = pins.by_name
        self.ways = self._build_edges()
        self._rests: dict[Place, Mapping[str, Decimal]] = {}
        self.costs = {dimension: self._costs(dimension) for dimension in DIMENSIONS}

    def least(self, place: Place) -> Mapping[str, Decimal]:
        """Return the least remaining amounts from a place."""
        node, asker = place
        known = (node, asker if asker in self.tools or asker == MODEL else "")
        if (rest := self._rests.get(known)) is None:
            found = ((name, costs.get(known)) for name, costs in self.costs.items())
            rest = self._rests[known] = {name: Decimal(cost) for name, cost in found if cost}
        return rest

    def _build_edges(self) -> dict[Place, tuple[Place, ...]]:
        askers = ("", MODEL, *self.tools)
        places = [(node, asker) for node in self.graph.nodes for asker in askers]
        return {place: tuple(dict.fromkeys(self._onwards(place))) for place in places}

    def _onwards(self, place: Place) -> Iterator[Place]:
        """Yield the places that a place may lead to. The asker changes at a node that asks for a call."""
        node, asker = place
        kind = self.graph.nodes[node].kind
        asks = node if node in self.tools else MODEL if kind == "act" else asker
        for edges in self.graph.edges.get(node, {}).values():
            for edge in edges:
                guard = edge.guard
                if guard is None or guard.name != "asked_by":
                    yield edge.target, asks
                elif guard.parameters.get("node") == asker:
                    yield edge.target, asks
                    break

    def _costs(self, dimension: str) -> dict[Place, int]:
        """Compute the cheapest paths in one dimension, backwards from the results, until none improves."""
        into: dict[Place, list[Place]] = {}
        for place, ways in self.ways.items():
            for target in ways:
                into.setdefault(target, []).append(place)
        best: dict[Place, int] = {}
        waiting: deque[tuple[int, Place]] = deque((0, place) for place in self.ways if self._result(place[0]))
        while waiting:
            cost, place = waiting.popleft()
            if best.get(place, cost + 1) <= cost:
                continue
            best[place] = cost
            for before in into.get(place, ()):
                more = cost + int(self._compute_place_amounts(before).get(dimension, 0))
                if more < best.get(before, more + 1):
                    waiting.append((more, before))
        return best

    def _result(self, node: str) -> bool:
        found = self.graph.nodes[node]
        return found.kind == "terminate" and (
            ENDINGS[found.config.code].terminal_class is TerminalClass.COMMIT
        )

    def _compute_place_amounts(self, place: Place) -> Amounts:
        """Return the least amounts that the work of one place uses."""
        node, asker = place
        kind = self.graph.nodes[node].kind
        if kind in ("act", "respond"):
            return {"model_turns": ONE}
        spec = self.tools.get(asker)
        if kind == "invoke_tool":
            return {"tool_calls": ONE, "steps": ONE} if spec is None else _compute_call_amounts(spec)
        if kind == "verify_observation" and spec is not None:
            return self._read_back(spec)
        return {}

    def _read_back(self, spec: ToolSpec) -> Amounts:
        reader = spec.verifier.read_back if spec.verifier is not None else None
        found = self.by_name.get(reader.tool) if reader is not None else None
        return {} if found is None else call_reserve(found, granted=False, step=False)


def _compute_call_amounts(spec: ToolSpec) -> Amounts:
    """Return the amounts of one tool call without side effects: whether it has a grant is not known yet."""
    reserve = call_reserve(spec, granted=False, step=True)
    return {name: amount for name, amount in reserve.items() if name != "side_effects"}

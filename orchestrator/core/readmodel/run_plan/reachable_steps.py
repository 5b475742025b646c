"""The working nodes that a run may still reach, and the nodes that each of them comes after.

All calls share the same sequence of nodes, so a place is a node together with the requester of the call
(`core/accounting/minimum_remaining.py`). A guard over a fact that nothing ahead writes again is already
decided. Every other guard is left open, so that no step that may still come is reported as skipped.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from orchestrator.core.domain.graph import CompiledGraph, GuardSpec
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.workflow.edge_guards import MODEL, holds

Place = tuple[str, str]
WORKS = ("tool", "respond", "act")
GOOD = {"tool": ("requested",), "respond": ("drafted",), "act": ("requested", "answered")}
OF_FACTS = ("facts", "fact_is", "fact_at_most")
SETS_INTENT = ("classify_intent", "resolve_scope")


class NodesAhead(NamedTuple):
    """The nodes ahead in order, each with the earlier nodes that it may come after.

    `first` are the nodes that may come next.
    """

    after: Mapping[str, tuple[str, ...]]
    first: tuple[str, ...]


NOWHERE = NodesAhead({}, ())


def ways_from(graph: CompiledGraph, state: RunState, start: Place, *, entering: bool = False) -> NodesAhead:
    """Compute the ways from a place. `entering`: the run has yet to reach the place."""
    wide = _GraphWalk(graph, state, decides=False).list_reachable_places(start, entering=entering)
    walk = _GraphWalk(graph, state, decides=True, wide=wide)
    first, following = walk.list_next_nodes(start, entering=entering)
    order = _sort_topologically(first, following)
    place = {node: number for number, node in enumerate(order)}
    after: dict[str, list[str]] = {node: [] for node in order}
    for node in order:
        for target in following[node]:
            if place[target] > place[node]:
                after[target].append(node)
    return NodesAhead({node: tuple(before) for node, before in after.items()}, tuple(first))


def list_later_nodes(graph: CompiledGraph, state: RunState, node: str) -> dict[str, None]:
    """Return every node that a run may reach after this one, for any requester of the previous call."""
    walk = _GraphWalk(graph, state, decides=False)
    askers = ("", MODEL, *(one.id for one in graph.nodes.values() if one.kind == "tool"))
    places = (walk.list_reachable_places((node, asker), entering=False) for asker in askers)
    return dict.fromkeys(found for seen in places for found, _ in seen)


class _GraphWalk:
    """A walk over one graph, given a state."""

    def __init__(
        self,
        graph: CompiledGraph,
        state: RunState,
        *,
        decides: bool,
        wide: Mapping[Place, None] | None = None,
    ) -> None:
        self.graph, self.state, self.decides = graph, state, decides
        nodes = [graph.nodes[node] for node, _ in wide or ()]
        # A pending call commits its fact, too.
        asks = [call.by for call in (*state.batch, *state.queue)]
        writers = [*nodes, *(graph.nodes[asker] for asker in asks if asker in graph.nodes)]
        self.rewritten = dict.fromkeys(node.config.fact for node in writers if node.kind == "tool")
        self.models = MODEL in asks or any(node.kind == "act" for node in nodes)
        self.classifies = any(node.kind in SETS_INTENT for node in nodes)

    def list_reachable_places(self, start: Place, *, entering: bool) -> dict[Place, None]:
        """Return every place that is reachable."""
        waiting = [start] if entering else list(self._onwards(start))
        found: dict[Place, None] = {}
        while waiting:
            place = waiting.pop()
            if place not in found:
                found[place] = None
                waiting.extend(self._onwards(place))
        return found

    def list_next_nodes(
        self, start: Place, *, entering: bool
    ) -> tuple[dict[str, None], dict[str, dict[str, None]]]:
        """Return the working nodes that come next, and for each reachable one its own next nodes."""
        hits = self._hits([start] if entering else self._onwards(start))
        first = dict.fromkeys(node for node, _ in hits)
        following: dict[str, dict[str, None]] = {}
        seen: dict[Place, None] = {}
        waiting = list(hits)
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen[place] = None
            onwards = self._hits(self._onwards(place))
            following.setdefault(place[0], {}).update(dict.fromkeys(node for node, _ in onwards))
            waiting.extend(onwards)
        return first, following

    def _hits(self, places: Iterator[Place] | list[Place]) -> list[Place]:
        """Return the nearest working places, in the order in which the graph names them."""
        waiting, seen, hits = list(places)[::-1], dict[Place, None](), list[Place]()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen[place] = None
            if self.graph.nodes[place[0]].kind in WORKS:
                hits.append(place)
            else:
                waiting.extend(list(self._onwards(place))[::-1])
        return hits

    def _onwards(self, place: Place) -> Iterator[Place]:
        """Yield the places that a place may lead to; the requester changes when a call is requested."""
        node, asker = place
        kind = self.graph.nodes[node].kind
        for outcome, edges in self.graph.edges.get(node, {}).items():
            if kind == "branch" and self._answer(node, asker) not in (None, outcome == "holds"):
                continue
            asks = asker if outcome != "requested" else node if kind == "tool" else MODEL
            for edge in edges:
                held = True if edge.guard is None else self._held(edge.guard, asks)
                if held is not False:
                    yield edge.target, asks
                if held:
                    break

    def _answer(self, node: str, asker: str) -> bool | None:
        predicate: GuardSpec = self.graph.nodes[node].config.predicate
        return self._held(predicate, asker)

    def _held(self, guard: GuardSpec, asker: str) -> bool | None:
        """Return whether a guard will hold at this place; None if that is undecided."""
        if guard.name == "asked_by":
            return guard.parameters["node"] == asker
        if not self.decides:
            return None
        if guard.name == "intent_is" and self.state.intent and not self.classifies:
            return holds(guard, self.state)
        if guard.name in OF_FACTS and self._stands(str(guard.parameters["fact"])):
            return holds(guard, self.state)
        return None

    def _stands(self, fact: str) -> bool:
        """Return whether a fact is committed and nothing ahead may commit another fact of its name."""
        numbered = self.models and fact[:1] == "f" and fact[1:].isdigit()
        return fact in self.state.facts and fact not in self.rewritten and not numbered


def _sort_topologically(first: dict[str, None], following: dict[str, dict[str, None]]) -> list[str]:
    """Return the nodes so that each precedes its followers, except along edges that lead back.

    The order is the reverse of the order in which a depth-first walk leaves the nodes.
    """
    left: list[str] = []
    open_: dict[str, None] = {}
    for start in reversed(first):
        if start in open_:
            continue
        open_[start] = None
        stack = [(start, reversed(following[start]))]
        while stack:
            node, targets = stack[-1]
            target = next((one for one in targets if one not in open_), None)
            if target is None:
                left.append(node)
                stack.pop()
            else:
                open_[target] = None
                stack.append((target, reversed(following[target])))
    return left[::-1]

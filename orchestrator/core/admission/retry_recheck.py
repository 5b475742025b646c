"""What a retry that begins behind the intake would have been asked there, under what is in force now.

A boundary or a policy that is stricter than the one of the run before holds for the retry from its first
step, though the nodes that hold the goal against them are behind it (R-SESS-9, R-GRAPH-12).
"""

from datetime import datetime
from typing import Final, NamedTuple

from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.nodes import kind_of
from orchestrator.core.workflow.node_protocol import NodeContext
from traces.core.integrity.chain import TraceEntry

# The kinds that judge the goal itself, and the answers of theirs that end a run. What is missing or unclear
# the run before got past.
JUDGES: Final = {
    "goal_intake": ("unparseable", "against_policy", "unsafe"),
    "resolve_scope": ("denied",),
}


class Judged(NamedTuple):
    """A state that may begin, and what its trace says of the judgement."""

    state: RunState
    said: tuple[TraceEntry, ...]


def judged_again(
    graph: CompiledGraph,
    manifest: Manifest,
    state: RunState,
    room: Headroom,
    at: datetime,
    desk: ContentStore,
) -> Judged | str:
    """The retry's state, guarded where what is in force now finds the goal suspect, and what was said of
    that; or why it may not run.

    Raises ContentMissing for answers that are not on the desk."""
    said: tuple[TraceEntry, ...] = ()
    for name in sorted(_collect_upstream_nodes(graph, state.position)):
        node = graph.nodes[name]
        if node.kind not in JUDGES:
            continue
        view = NodeContext(
            graph=graph, manifest=manifest, node=node, state=state, headroom=room, desk=desk, at=at, number=0
        )
        step = kind_of(node.kind).enter(view)
        if step.interrupt is not None:
            return step.interrupt.reason
        if step.outcome in JUDGES[node.kind]:
            return step.state.reason or step.outcome
        state = state.evolve(alarms=step.state.alarms, guarded=step.state.guarded)
        said += step.said
    return Judged(state, said)


def _collect_upstream_nodes(graph: CompiledGraph, position: str) -> set[str]:
    """The nodes, but for the position itself, from which a run comes to it."""
    leading: dict[str, list[str]] = {}
    for source, outcomes in graph.edges.items():
        for edges in outcomes.values():
            for edge in edges:
                leading.setdefault(edge.target, []).append(source)
    found: set[str] = set()
    waiting = [position]
    while waiting:
        for source in leading.get(waiting.pop(), ()):
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found - {position}

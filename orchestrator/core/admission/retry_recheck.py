"""Repeat the intake checks for a retry that begins after the intake, under the rules now in force.

A boundary or policy stricter than the earlier run's applies to the retry from its first step, although the
nodes that check the goal against them are upstream of the checkpoint (R-SESS-9, R-GRAPH-12).
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

# The kinds of nodes that judge the goal itself, and those of their answers that end a run. The earlier run
# already resolved missing or unclear input.
JUDGES: Final = {
    "goal_intake": ("unparseable", "against_policy", "unsafe"),
    "resolve_scope": ("denied",),
}


class RecheckedState(NamedTuple):
    """A state that may begin, and the trace entries of the judgement."""

    state: RunState
    said: tuple[TraceEntry, ...]


def judged_again(
    graph: CompiledGraph,
    manifest: Manifest,
    state: RunState,
    room: Headroom,
    at: datetime,
    desk: ContentStore,
) -> RecheckedState | str:
    """Return the retry's state with the trace entries of the checks, or why it may not run.

    The state is guarded if the rules in force find the goal suspect.
    Raises: ContentMissing for answers that are not in the content store.
    """
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
    return RecheckedState(state, said)


def _collect_upstream_nodes(graph: CompiledGraph, position: str) -> set[str]:
    """Return the nodes from which a run can reach the position, without the position itself."""
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

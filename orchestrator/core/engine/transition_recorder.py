"""A walk in the making: what was recorded so far, and how a transition is added (docs/ring.md).

The last transition may be put anew as long as the walk goes on: what a node asks for on being entered belongs
to the transition that led to it.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.core.accounting.price_correction import in_force
from orchestrator.core.accounting.settlement import wall_clock
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import Effect
from orchestrator.core.domain.graph import CompiledGraph, Node
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import AnyEvent, Headroom
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.derived_status import derive_status
from orchestrator.core.engine.invariants import check_invariants
from orchestrator.core.workflow.node_protocol import (
    AdvanceResult,
    NodeContext,
    NodeResult,
    Settlement,
    Transition,
)
from traces.core.events.phases import Phase
from traces.core.integrity.chain import TraceEntry

STAY = "."
_NONE: Mapping[str, Any] = {}


class TransitionRecorder:
    """The transitions of one walk; nothing of it outlives `advance`.

    `recorded` is the state after the last transition, `state` the one being worked on.
    """

    def __init__(
        self,
        graph: CompiledGraph,
        manifest: Manifest,
        state: RunState,
        event: AnyEvent,
        headroom: Headroom,
        desk: ContentStore,
    ) -> None:
        self.graph = graph
        self._pinned = self._priced = manifest
        self._prices = (_NONE, _NONE)
        self.headroom = headroom
        self.desk = desk
        self.at = event.at
        self.initial = self.recorded = self.state = state
        self.transitions: list[Transition] = []
        self.effects: list[Effect] = []
        self.settlements: list[Settlement] = []

    @property
    def manifest(self) -> Manifest:
        """The run's manifest, at the prices that replace pinned ones."""
        models, tools = self.state.prices, self.state.tool_prices
        if models is not self._prices[0] or tools is not self._prices[1]:
            self._prices, self._priced = (models, tools), in_force(self._pinned, models, tools)
        return self._priced

    def _move(
        self, step: NodeResult, guard: str | None, target: str, phase: Phase, said: tuple[TraceEntry, ...]
    ) -> None:
        state = step.state
        moved: dict[str, Any] = {"position": target, "version": self.recorded.version + 1}
        if state.away is not None:
            # A run waits for a model where it asks it.
            moved["away"] = None
        if target in self.graph.cycle_limits:
            moved["visits"] = {**state.visits, target: state.visits.get(target, 0) + 1}
        self._record(step.outcome or STAY, guard, phase, said, state.evolve(**moved), step.effects)

    def _stay(self, state: RunState, said: tuple[TraceEntry, ...], effects: tuple[Effect, ...] = ()) -> None:
        """Record that the run stays where it is, and why."""
        phase = Phase(said[0].phase) if said else Phase.TRACE_LOGGING
        self._record(STAY, None, phase, said, state.evolve(version=self.recorded.version + 1), effects)

    def _wait(self, step: NodeResult, said: tuple[TraceEntry, ...], *, entering: bool) -> None:
        """A node waits. What it asked on being entered belongs to the transition that led to it."""
        if not entering:
            self._stay(step.state, said + step.said, step.effects)
            return
        last = self.transitions.pop()
        self._replace(last, step.state, said + step.said, step.effects)

    def _record(
        self,
        outcome: str,
        guard: str | None,
        phase: Phase,
        said: tuple[TraceEntry, ...],
        state: RunState,
        effects: tuple[Effect, ...],
    ) -> None:
        """Add a transition; `state` bears the version that it leads to."""
        before = self.recorded
        self.recorded = self.state = state
        self.transitions.append(
            Transition(
                number=self.state.version,
                source=before.position,
                outcome=outcome,
                guard=guard,
                target=self.state.position,
                phase=int(phase),
                said=said,
                before=before,
                after=self.state,
                effects=tuple(effect.id for effect in effects),
            )
        )

    def _replace(
        self,
        last: Transition,
        state: RunState,
        said: tuple[TraceEntry, ...],
        effects: tuple[Effect, ...] = (),
    ) -> None:
        """Put the last transition anew with a later state and more said."""
        self.recorded = self.state = (
            state if state.version == last.number else state.evolve(version=last.number)
        )
        self.transitions.append(
            Transition(
                number=last.number,
                source=last.source,
                outcome=last.outcome,
                guard=last.guard,
                target=self.state.position,
                phase=last.phase,
                said=last.said + said,
                before=last.before,
                after=self.state,
                effects=last.effects + tuple(effect.id for effect in effects),
            )
        )

    def finish_walk(self) -> AdvanceResult:
        """Set status and clock, check the invariants, hand the walk over."""
        if not self.transitions:
            return AdvanceResult(transitions=(), state=self.initial, effects=())
        usage = self.state.usage
        clock = wall_clock(self.initial, usage, self.at)
        if clock is not None:
            usage, settlement = clock
            self.settlements.append(settlement)
        state, said = derive_status(self.initial, self.state, self.at, usage)
        self._replace(self.transitions.pop(), state, said)
        check_invariants(self.initial, self.state)
        return AdvanceResult(
            transitions=tuple(self.transitions),
            state=self.state,
            effects=tuple(self.effects),
            settlements=tuple(self.settlements),
            made=self.desk.made,
        )

    def _node(self) -> Node:
        return self.graph.nodes[self.state.position]

    def _view(self, number: int, asked: str = "") -> NodeContext:
        return NodeContext(
            graph=self.graph,
            manifest=self.manifest,
            node=self._node(),
            state=self.state,
            headroom=self.headroom,
            desk=self.desk,
            at=self.at,
            number=number,
            asked=asked,
        )

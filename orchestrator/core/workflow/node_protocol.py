"""The interface of nodes to the engine: a node receives a NodeContext and returns a NodeResult."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple, Protocol

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import Amounts, Effect, effect_id
from orchestrator.core.domain.graph import CompiledGraph, Interrupt, Node, answer_schema
from orchestrator.core.domain.manifest import Manifest, Pins
from orchestrator.core.domain.run_events import AnyEvent, Headroom
from orchestrator.core.domain.run_state import PendingInterrupt, RunState
from orchestrator.core.domain.tool_spec import Risk, ToolSpec
from orchestrator.core.policy.rules import Policy
from traces.core.events.phases import Phase
from traces.core.events.trace_events import TraceEventBody
from traces.core.integrity.chain import TraceEntry


# Types with several instances per transition are named tuples: a frozen dataclass costs three times as much.
class NodeContext(NamedTuple):
    """Everything that a node may read.

    `at` is the commit's database time, `number` the transition about to be made. `asked` is the model whose
    call the event is the outcome of ("" if it is not a model's).
    """

    graph: CompiledGraph
    manifest: Manifest
    node: Node
    state: RunState
    headroom: Headroom
    desk: ContentStore
    at: datetime
    number: int
    asked: str = ""

    @property
    def pins(self) -> Pins:
        """The versions the run is pinned to."""
        return self.manifest.pins

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Return the pinned policy, and the newest one if the commit has it."""
        newest = self.headroom.policy
        return (self.pins.policy,) if newest is None else (self.pins.policy, newest)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The schema of the answer: the workflow's, the goal's, or both combined."""
        return answer_schema(self.graph.spec, self.manifest.goal)

    def risk_of(self, spec: ToolSpec) -> Risk:
        """Return the risk class in force (R-TOOL-4).

        It is the pinned class, or a higher one to which an admin has raised the tool since. A lower class
        applies only to runs that are pinned to it.
        """
        raised = self.headroom.raised_tools.get(spec.name)
        return raised if raised is not None and raised.rank > spec.risk.rank else spec.risk

    def needs_gate(self, spec: ToolSpec) -> bool:
        """Return whether a call needs approval by a person: as pinned, or always under a raised risk."""
        return spec.needs_gate or self.risk_of(spec) is not spec.risk

    def effect_id(self, ordinal: int, attempt: int) -> str:
        """Return the id of an effect requested in this transition."""
        return effect_id(self.manifest.run, self.number, ordinal, attempt)

    def clock_left_ms(self) -> int | None:
        """Return the working time left at `at` in milliseconds, or None without a limit."""
        limit = self.state.limits.get("wall_clock_seconds")
        if limit is None:
            return None
        return int(limit * 1000) - clock_ms(self.state, self.at)

    def deadline_ms(self, timeout_ms: int) -> int:
        """Return the time limit of an effect in milliseconds, at least 1.

        It is the least of its own timeout, the working time left, and the time to the goal's deadline.
        """
        bounds = [timeout_ms]
        if (left := self.clock_left_ms()) is not None:
            bounds.append(left)
        if (deadline := self.manifest.goal.deadline) is not None:
            bounds.append(int((deadline - self.at).total_seconds() * 1000))
        return max(1, min(bounds))


def clock_ms(state: RunState, at: datetime) -> int:
    """Return the working time used at `at` in milliseconds (R-BUDGET-1).

    The clock runs only while the run is in progress.
    """
    if state.clock_since is None:
        return state.clock_ms
    return state.clock_ms + max(0, int((at - state.clock_since).total_seconds() * 1000))


def trace_event(phase: Phase, body: TraceEventBody, actor: str = "interlock") -> TraceEntry:
    """Build one event for the trace."""
    return TraceEntry(phase=int(phase), actor=actor, body=body)


class NodeResult(NamedTuple):
    """The result of a node.

    `outcome`: one of its kind's outcomes, or None while it waits for an event. `interrupt`: an interrupt with
    its reason, instead of an outcome. `state` is the next state. `effects` are the requested effects. `anew`:
    the trace entries and `state` take effect, and the node is entered again as soon as the run may start
    work.
    """

    state: RunState
    outcome: str | None = None
    interrupt: PendingInterrupt | None = None
    said: tuple[TraceEntry, ...] = ()
    effects: tuple[Effect, ...] = ()
    anew: bool = False


class NodeKind(Protocol):
    """One kind of node: one file in core/nodes, discovered automatically.

    `outcomes` is the closed set; `phases` gives each outcome its phase; `artifact` is what the node passes
    on. `optional` names the outcomes that a graph may leave without an edge, or with guarded edges alone: the
    kind then never ends with them. `starts_work` marks kinds before which a pause or a requested interrupt
    takes effect.
    """

    kind: ClassVar[str]
    outcomes: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]]
    phases: ClassVar[Mapping[str, Phase]]
    artifact: ClassVar[str]
    starts_work: ClassVar[bool]
    config: ClassVar[type[FrozenModel]]

    def enter(self, view: NodeContext) -> NodeResult:
        """Enter the node. Pure: a held run enters again."""
        ...

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """Handle an event for a waiting node.

        Raises: UnexpectedEvent for an event that the node cannot handle.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEffect:
    """The reason why an effect may not be requested: a dimension with too little left."""

    dimension: str
    limit: Decimal | None
    wanted: Decimal
    left: Decimal
    account: str = "run"


class Transition(NamedTuple):
    """One transition (docs/ring.md): an edge taken, or a stay (outcome ``.``) while a node keeps waiting."""

    number: int
    source: str
    outcome: str
    guard: str | None
    target: str
    phase: int
    said: tuple[TraceEntry, ...]
    before: RunState
    after: RunState
    effects: tuple[str, ...] = ()


class Settlement(NamedTuple):
    """The actual cost of an effect against its reservation.

    `unknown`: the actual cost cannot be determined (a lost reply). `price_version` is that of the price
    charged.
    """

    effect: str
    reserved: Amounts
    actual: Amounts
    unknown: bool = False
    price_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceResult:
    """The result of `advance`: the transitions in order, the state after them, the effects to perform."""

    transitions: tuple[Transition, ...]
    state: RunState
    effects: tuple[Effect, ...]
    settlements: tuple[Settlement, ...] = ()
    made: Mapping[str, bytes] = field(default_factory=dict)


def make_interrupt_result(
    state: RunState, kind: Interrupt, reason: str, said: tuple[TraceEntry, ...] = ()
) -> NodeResult:
    """Return a result that takes an interrupt."""
    return NodeResult(state=state, interrupt=PendingInterrupt(interrupt=kind, reason=reason), said=said)

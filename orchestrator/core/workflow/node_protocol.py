"""How a node speaks with the machine: it gets a View, it answers with a Step."""

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
from traces.core.events.phases import Phase
from traces.core.events.trace_events import TraceEventBody
from traces.core.integrity.chain import TraceEntry


# Named tuples where several are made at each transition: a frozen dataclass costs three times as much.
class NodeContext(NamedTuple):
    """All a node may look at. `at` is the commit's database time, `number` the transition about to be
    made, `asked` the model whose call the event is the outcome of ("": of none)."""

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
    def output_schema(self) -> dict[str, Any] | None:
        """The form of the answer: what the workflow declares and what the goal asks for, both where both
        do."""
        return answer_schema(self.graph.spec, self.manifest.goal)

    def risk_of(self, spec: ToolSpec) -> Risk:
        """The risk class in force: the pinned one, or a higher one that an admin has raised the tool to since
        (R-TOOL-4). A lower one waits for runs that are pinned to it."""
        raised = self.headroom.raised_tools.get(spec.name)
        return raised if raised is not None and raised.rank > spec.risk.rank else spec.risk

    def needs_gate(self, spec: ToolSpec) -> bool:
        """Whether a call needs a person's approval: as pinned, and always under a raised class."""
        return spec.needs_gate or self.risk_of(spec) is not spec.risk

    def effect_id(self, ordinal: int, attempt: int) -> str:
        """The id of an effect asked for in this transition."""
        return effect_id(self.manifest.run, self.number, ordinal, attempt)

    def clock_left_ms(self) -> int | None:
        """Working time left at `at`, in ms; None without a limit."""
        limit = self.state.limits.get("wall_clock_seconds")
        if limit is None:
            return None
        return int(limit * 1000) - clock_ms(self.state, self.at)

    def deadline_ms(self, timeout_ms: int) -> int:
        """What an effect may take: its own timeout, the working time left, the goal's deadline; never
        below 1."""
        bounds = [timeout_ms]
        if (left := self.clock_left_ms()) is not None:
            bounds.append(left)
        if (deadline := self.manifest.goal.deadline) is not None:
            bounds.append(int((deadline - self.at).total_seconds() * 1000))
        return max(1, min(bounds))


def clock_ms(state: RunState, at: datetime) -> int:
    """Working time used at `at`, in ms: the clock runs only while the run is in progress (R-BUDGET-1)."""
    if state.clock_since is None:
        return state.clock_ms
    return state.clock_ms + max(0, int((at - state.clock_since).total_seconds() * 1000))


def trace_event(phase: Phase, body: TraceEventBody, actor: str = "interlock") -> TraceEntry:
    """One event for the trace."""
    return TraceEntry(phase=int(phase), actor=actor, body=body)


class NodeResult(NamedTuple):
    """What a node answers.

    `outcome`: one of its kind's outcomes, or None while it waits for an event. `interrupt`: instead of an
    outcome, one of the interrupts with its reason. `state` is the next state. `effects` are asked of the
    world. `anew`: what is said and the state hold, and the node is entered once more, as soon as the run may
    start work.
    """

    state: RunState
    outcome: str | None = None
    interrupt: PendingInterrupt | None = None
    said: tuple[TraceEntry, ...] = ()
    effects: tuple[Effect, ...] = ()
    anew: bool = False


class NodeKind(Protocol):
    """One kind of node: one file in core/nodes, found by itself.

    `outcomes` is the closed set; `phases` gives each outcome its phase, `artifact` what it hands on.
    `optional` names those that a graph may leave without an edge, or with guarded ones alone: the kind then
    never ends so. `starts_work` marks kinds before which a pause or an asked interrupt is obeyed.
    """

    kind: ClassVar[str]
    outcomes: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]]
    phases: ClassVar[Mapping[str, Phase]]
    artifact: ClassVar[str]
    starts_work: ClassVar[bool]
    config: ClassVar[type[FrozenModel]]

    def enter(self, view: NodeContext) -> NodeResult:
        """The run arrives here. Pure: a held run enters again."""
        ...

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """An event for a waiting node. Raises Misfit for one it cannot answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why an effect may not be asked for: a dimension whose rest does not suffice."""

    dimension: str
    limit: Decimal | None
    wanted: Decimal
    left: Decimal
    account: str = "run"


class Transition(NamedTuple):
    """One move of a walk (docs/ring.md): an edge taken, or a stay (outcome ``.``) while a node goes on
    waiting."""

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
    """What an effect really took, against what was held for it; `unknown` where nobody can say (a lost
    reply). `price_version` is that of the price it was charged at."""

    effect: str
    reserved: Amounts
    actual: Amounts
    unknown: bool = False
    price_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceResult:
    """What `advance` answers: the transitions in order, the state after them, and the effects to perform."""

    transitions: tuple[Transition, ...]
    state: RunState
    effects: tuple[Effect, ...]
    settlements: tuple[Settlement, ...] = ()
    made: Mapping[str, bytes] = field(default_factory=dict)


def make_interrupt_result(
    state: RunState, kind: Interrupt, reason: str, said: tuple[TraceEntry, ...] = ()
) -> NodeResult:
    """A step that takes an interrupt."""
    return NodeResult(state=state, interrupt=PendingInterrupt(interrupt=kind, reason=reason), said=said)

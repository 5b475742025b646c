"""Build the start of a run: budget limits, first state and first move of the trace (R-GRAPH-12)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, NamedTuple

from budgets.core.dimension import Dimension
from budgets.core.limit_profiles import limits_for as defaults_for
from orchestrator.core.admission.errors import GoalInvalid
from orchestrator.core.common.goal import Goal, Mode
from orchestrator.core.compiler.compiler import transition_bound
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest, Pins
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.workflow.node_protocol import trace_event
from traces.core.canonical import canonical_model, payload_digest
from traces.core.events.phases import Phase
from traces.core.events.trace_events import TaskSubmitted
from traces.core.integrity.chain import TraceEntry, UnchainedTransition

DIMENSIONS = tuple(dimension.value for dimension in Dimension)


def limits_for(
    graph: CompiledGraph, pins: Pins, goal: Goal, asked: Mapping[str, Decimal]
) -> dict[str, Decimal]:
    """Return the run's limits: the boundary's, narrowed by the workflow's and by what the task asks for.

    A task may ask for less, never for more than its boundary gives.
    Raises: GoalInvalid if the task asks for more, or if a long_running task states no time.
    """
    timed = "wall_clock_seconds" in asked or pins.boundary.budget.get("wall_clock_seconds") is not None
    timed = timed or "wall_clock_seconds" in graph.spec.budget
    if goal.mode is Mode.LONG_RUNNING and not timed:
        raise GoalInvalid(detail="a long_running task states its wall_clock_seconds", pointer="/budget")
    limits = given_by(graph, pins, goal)
    for name, amount in asked.items():
        ceiling = limits.get(name)
        if name not in DIMENSIONS or amount < 0 or (ceiling is not None and amount > ceiling):
            raise GoalInvalid(detail=f"at most {ceiling} {name} can be asked for", pointer=f"/budget/{name}")
        limits[name] = amount
    limits["transitions"] = Decimal(transition_bound(graph, limits))
    return limits


def given_by(graph: CompiledGraph, pins: Pins, goal: Goal) -> dict[str, Decimal]:
    """Return the limits of a run whose task asks for nothing, without the transitions."""
    stated: dict[str, Decimal | None] = dict(pins.boundary.budget)
    for name, given in graph.spec.budget.items():
        held = stated.get(name)
        stated[name] = Decimal(given) if held is None else min(Decimal(given), held)
    mode: Literal["interactive", "async"] = "interactive" if goal.mode is Mode.INTERACTIVE else "async"
    return {str(name): amount for name, amount in defaults_for(mode, stated=stated).items()}


def limits_again(
    graph: CompiledGraph, pins: Pins, goal: Goal, asked: Mapping[str, Decimal]
) -> dict[str, Decimal]:
    """Return a retry's limits: what its pins give now, or less if its task asked for less.

    Raises: GoalInvalid.
    """
    given = given_by(graph, pins, goal)
    return limits_for(
        graph, pins, goal, {name: min(amount, given.get(name, amount)) for name, amount in asked.items()}
    )


def opening_state(manifest: Manifest, entry: str) -> RunState:
    """Return the state of a queued run."""
    return RunState(position=entry, limits=dict(manifest.limits))


class FirstMove(NamedTuple):
    """The first move and the content that it names."""

    move: UnchainedTransition
    bodies: dict[str, bytes]


def opening_move(
    manifest: Manifest, entry: str, manifest_digest: str, salt: bytes, more: tuple[TraceEntry, ...] = ()
) -> FirstMove:
    """Build record 0: the task was submitted.

    `more` holds further trace entries of a run that does not begin at its graph's entry.
    """
    goal = canonical_model(manifest.goal)
    stored = payload_digest(salt, goal)
    body = TaskSubmitted(
        task=str(manifest.task),
        workflow=manifest.workflow,
        workflow_version=manifest.workflow_version,
        graph=manifest.graph,
        manifest=manifest_digest,
        boundary=manifest.pins.boundary_digest,
        goal=stored,
        mode=manifest.goal.mode.value,
        principal=str(manifest.principal),
        scripted=manifest.scripted,
    )
    move = UnchainedTransition(
        source="",
        outcome="submitted",
        guard=None,
        target=entry,
        phase=int(Phase.GOAL_INTAKE),
        patch={},
        said=(trace_event(Phase.GOAL_INTAKE, body, actor=str(manifest.principal)), *more),
        effects=(),
    )
    return FirstMove(move, {stored: goal})

"""The graph that a workflow declares, and its compiled form (R-GRAPH-1, R-GRAPH-3)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel, Hex, Slug, Small, Text
from orchestrator.core.common.goal import Goal

MODEL_PATIENCE_SECONDS = 900


class Interrupt(StrEnum):
    """An interrupt that is handled before any node runs (R-GRAPH-5)."""

    CANCELLED = "cancelled"
    BUDGET_EXHAUSTED = "budget_exhausted"
    TIMEOUT = "timeout"
    EXPIRED = "expired"
    UNSAFE = "unsafe"
    PERMISSION_DENIED = "permission_denied"
    DEPENDENCY_UNAVAILABLE = "dependency_unavailable"
    REPEATED_FAILURE = "repeated_failure"


class GuardSpec(FrozenModel):
    """A named predicate of core/workflow/edge_guards.py with its parameters."""

    name: Slug
    parameters: dict[str, Small] = Field(default_factory=dict)


class NodeSpec(FrozenModel):
    id: Slug
    kind: Slug
    config: dict[str, Any] = Field(default_factory=dict)


class EdgeSpec(FrozenModel):
    source: Slug
    outcome: Slug
    guard: GuardSpec | None = None
    target: Slug


class CycleLimit(FrozenModel):
    """A declared limit for cycles through a node: at most `limit` entries of `through` in one run."""

    through: Slug
    limit: int = Field(ge=1, le=10_000)


class GraphSpec(FrozenModel):
    """A workflow version's document.

    `tools` are the only names that it may use; `boundary` is the slug of the default boundary.
    `model_patience_seconds` is how long its runs wait for an unavailable model; an interactive task does
    not wait.
    """

    slug: Slug
    title: str = ""
    description: Text = ""
    tier: int = Field(ge=1, le=7)
    justification: Text = ""
    boundary: Slug
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] | None = None
    tools: tuple[str, ...] = ()
    budget: dict[str, int | str] = Field(default_factory=dict)
    scenario: str | None = None
    model_patience_seconds: int = Field(default=MODEL_PATIENCE_SECONDS, ge=0, le=86_400)
    entry: Slug
    nodes: tuple[NodeSpec, ...] = Field(max_length=500)
    edges: tuple[EdgeSpec, ...] = Field(max_length=3_000)
    interrupts: dict[Interrupt, Slug]
    cycles: tuple[CycleLimit, ...] = ()


class Node(FrozenModel):
    """A compiled node: its config is parsed by its kind."""

    id: str
    kind: str
    config: Any = None


class Edge(FrozenModel):
    """A compiled edge; edges of one (source, outcome) are tried in order, the last has no guard."""

    guard: GuardSpec | None
    target: str


class CompiledGraph(FrozenModel):
    """A compiled graph, immutable (R-GRAPH-3).

    `digest` is the SHA-256 of the canonical form of the specification.
    """

    spec: GraphSpec
    digest: Hex
    nodes: Mapping[str, Node]
    edges: Mapping[str, Mapping[str, tuple[Edge, ...]]]
    interrupts: Mapping[Interrupt, str]
    entry: str
    tier: int
    cycle_limits: Mapping[str, int] = Field(default_factory=dict)

    def edges_of(self, node: str, outcome: str) -> tuple[Edge, ...]:
        """Return the edges that leave `node` for `outcome`, in order."""
        return self.edges[node][outcome]


def answer_schema(spec: GraphSpec, goal: Goal) -> dict[str, Any] | None:
    """Return the schema of a run's answer: the workflow's, the goal's, or both combined."""
    own, asked = spec.output_schema, goal.output_schema
    return {"allOf": [own, asked]} if own is not None and asked is not None else own or asked

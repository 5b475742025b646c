"""What a run is pinned to when it is admitted (R-GRAPH-12)."""

from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

from orchestrator.core.common.frozen_model import FrozenModel, Hex
from orchestrator.core.common.goal import Goal
from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.policy.rules import Policy
from orchestrator.core.policy.task_scope import TaskScope


class Pins(FrozenModel):
    """The versions in force, content-addressed and shared by all runs admitted under them.

    `unpriced` are tools whose price nobody has stated: pinned at the declared worst case, or left out of
    `tools` where policy refuses them (R-BUDGET-15). `policy` is None in pins from before there was one.
    `left_out` are pinned tools that a model is not offered, with what nobody has set up for them; `cautions`
    those whose credential may end before the run does (orchestrator/core/tools/readiness.py).
    """

    boundary: Boundary
    boundary_digest: Hex
    tools: tuple[ToolSpec, ...]
    tool_digests: dict[str, Hex]
    registry_digest: Hex
    profiles: tuple[ModelProfile, ...]
    prompts: dict[str, str]
    prompt_versions: dict[str, int]
    price_book: str
    policy: Policy | None = None
    unpriced: tuple[str, ...] = ()
    left_out: dict[str, str] = {}
    cautions: dict[str, str] = {}

    @cached_property
    def by_name(self) -> dict[str, ToolSpec]:
        """The pinned tools by name."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def by_capability(self) -> dict[str, list[ToolSpec]]:
        """The pinned tools by what they are for."""
        found: dict[str, list[ToolSpec]] = {}
        for tool in self.tools:
            found.setdefault(tool.capability, []).append(tool)
        return found

    @cached_property
    def worked_out(self) -> dict[object, Any]:
        """What was worked out of these pins, for every run that has them. Each entry holds the parts that it
        was worked out of, for a copy with other parts takes the entries along."""
        return {}

    def profile_for(self, role: Role) -> ModelProfile:
        """The profile that plays `role`, or the first one."""
        return next((p for p in self.profiles if role in p.roles), self.profiles[0])


class Expected(FrozenModel):
    """What came of the newest runs of a workflow that came to a result, `runs` of them: for each place in a
    run, bounds (lower, upper) of what remained of each dimension (core/accounting/remaining_estimate.py).

    `least` is what none of them did with less of, by place: the bounds are wider where few kinds of goals
    were seen. Where nothing is said of it, the lower bound is.
    """

    runs: int = 0
    rest: dict[str, dict[str, tuple[Decimal, Decimal]]] = {}
    least: dict[str, dict[str, Decimal]] = {}


class Began(FrozenModel):
    """Where a retry began: after record `record`, whose hash is `record_hash`, of the run `run`; `origin` is
    the first run of the line. `by` asked for it, and the person `owner` answers for that (R-SESS-9)."""

    run: UUID
    record: int
    record_hash: Hex
    origin: UUID
    by: UUID
    owner: UUID


class Manifest(FrozenModel):
    """One run's pins. `limits` is the budget vector (dimension → amount, absent: unlimited). `expected` is
    what was known of its like when it was admitted; None in runs that nothing was expected of. `scope` is
    what the goal names (R-TOOL-17); `files` the digest of those that the task came with; `began` None in
    a run that is no retry. `asked` is the budget that its task asked for, which a line of retries hands on;
    None in runs from before that was kept."""

    run: UUID
    task: UUID
    tenant: UUID
    principal: UUID
    owner: UUID
    scopes: tuple[str, ...]
    goal: Goal
    goal_digest: Hex
    graph: Hex
    pins: Pins
    pins_digest: Hex
    limits: dict[str, Decimal]
    asked: dict[str, Decimal] | None = None
    expected: Expected | None = None
    scope: TaskScope | None = None
    files: Hex | None = None
    workflow: str
    workflow_version: int
    context_pack: str = "none"
    knowledge_snapshot: str = "none"
    code_version: str
    core_version: int
    scripted: bool
    admitted_at: datetime
    began: Began | None = None

    @property
    def line(self) -> UUID:
        """The first run of a line of retries, which all of them are to the world outside: the same action has
        the same key, whichever run asks for it (R-TOOL-9)."""
        return self.run if self.began is None else self.began.origin

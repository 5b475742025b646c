"""The manifest: what a run is pinned to when it is admitted (R-GRAPH-12)."""

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

    `unpriced` are tools without a stated price: pinned at the declared worst case, or left out of `tools`
    if the policy refuses them (R-BUDGET-15). `left_out` are pinned tools that a model is not offered, each
    with what is not set up for it; `cautions` are tools whose credential may expire before the run ends
    (orchestrator/core/tools/readiness.py).
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
    policy: Policy
    unpriced: tuple[str, ...] = ()
    left_out: dict[str, str] = {}
    cautions: dict[str, str] = {}

    @cached_property
    def by_name(self) -> dict[str, ToolSpec]:
        """Return the pinned tools by name."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def by_capability(self) -> dict[str, list[ToolSpec]]:
        """Return the pinned tools by capability."""
        found: dict[str, list[ToolSpec]] = {}
        for tool in self.tools:
            found.setdefault(tool.capability, []).append(tool)
        return found

    @cached_property
    def worked_out(self) -> dict[object, Any]:
        """Return the cache of values computed from these pins, shared by all runs that have them.

        Each entry holds the parts that it was computed from, because a copy with other parts keeps the
        entries.
        """
        return {}

    def profile_for(self, role: Role) -> ModelProfile:
        """Return the profile that plays `role`, or the first one."""
        return next((p for p in self.profiles if role in p.roles), self.profiles[0])


class UsageStatistics(FrozenModel):
    """The statistics of the newest successful runs of a workflow, `runs` of them.

    `rest` gives, for each place in a run, bounds (lower, upper) of what remained of each dimension
    (core/accounting/remaining_estimate.py). `least` gives, by place, the least amounts with which any of
    those runs finished: the bounds are wider if few kinds of goals were seen. Without an entry in `least`
    the lower bound applies.
    """

    runs: int = 0
    rest: dict[str, dict[str, tuple[Decimal, Decimal]]] = {}
    least: dict[str, dict[str, Decimal]] = {}


class RetryStart(FrozenModel):
    """The start of a retry: after record `record`, with hash `record_hash`, of the run `run`.

    `origin` is the first run of the line. `by` requested the retry, and the person `owner` is responsible
    for it (R-SESS-9).
    """

    run: UUID
    record: int
    record_hash: Hex
    origin: UUID
    by: UUID
    owner: UUID


class Manifest(FrozenModel):
    """One run's pins.

    `limits` is the budget vector (dimension → amount, absent: unlimited). `expected` holds the statistics
    of similar runs at admission; None if there were none. `scope` is what the goal names (R-TOOL-17);
    `files` is the digest of the files that came with the task; `began` is None in a run that is no retry.
    `asked` is the budget that its task asked for, which a line of retries passes on.
    """

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
    asked: dict[str, Decimal]
    expected: UsageStatistics | None = None
    scope: TaskScope
    files: Hex | None = None
    workflow: str
    workflow_version: int
    context_pack: str = "none"
    knowledge_snapshot: str = "none"
    code_version: str
    core_version: int
    scripted: bool
    admitted_at: datetime
    began: RetryStart | None = None

    @property
    def line(self) -> UUID:
        """Return the first run of a line of retries.

        To external systems all runs of the line are this one: the same action has the same key, whichever
        run requests it (R-TOOL-9).
        """
        return self.run if self.began is None else self.began.origin

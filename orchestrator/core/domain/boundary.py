"""The autonomy boundary: what a run may see, call, decide and spend (R-GRAPH-10)."""

from decimal import Decimal
from typing import Literal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel, Slug, Text
from orchestrator.core.common.name_patterns import first_naming, is_name_match
from orchestrator.core.domain.tool_spec import Risk, ToolSpec
from orchestrator.core.policy.task_scope import ScopeGrant


class ToolGrant(FrozenModel):
    """One allowed tool; `name` may end in `.*`. `sandbox`: the tool is called only in isolation."""

    name: str
    risk_ceiling: Risk = Risk.DESTRUCTIVE
    sandbox: bool = False

    def covers(self, tool: str) -> bool:
        """Return whether the grant names `tool`."""
        return is_name_match(self.name, tool)


class Boundary(FrozenModel):
    """A boundary version, immutable and addressed by the digest of its canonical form.

    `compensation` decides about completed actions when a run ends without its result: people are asked
    before each is undone, they are undone at once, or they are only reported (R-TOOL-15). `on_exhaustion`
    decides about an exhausted budget: the run ends with what it has, or it is frozen and asks people for
    more, at most `budget_requests` times a run (R-BUDGET-6). `scope` is what every task under the boundary
    may reach in addition to what the task names (R-TOOL-17).
    """

    slug: Slug
    version: int = Field(ge=1)
    title: str = ""
    observations: tuple[str, ...] = ()
    state_writes: tuple[str, ...] = ("task_state",)
    tools: tuple[ToolGrant, ...] = ()
    risk_ceiling: Risk = Risk.READ_ONLY
    decision_rights: tuple[
        Literal[
            "plan_change", "tool_choice", "parameter_drafting", "clarification", "escalation_recommendation"
        ],
        ...,
    ] = ("tool_choice", "parameter_drafting", "clarification")
    budget: dict[str, Decimal | None] = Field(default_factory=dict)
    escalation_routes: dict[str, str] = Field(default_factory=dict)
    memory: Literal["none", "read", "propose"] = "none"
    without_approval: tuple[Text, ...] = ()
    with_approval: tuple[Text, ...] = ()
    fails_closed_on: tuple[Text, ...] = ()
    denied_words: tuple[str, ...] = ()
    on_exhaustion: Literal["stop", "request"] = "stop"
    compensation: Literal["ask", "automatic", "report"] = "ask"
    budget_requests: int = Field(default=3, ge=1, le=20)
    gate_ttl_seconds: int = Field(default=86_400, ge=1)
    grant_ttl_seconds: int = Field(default=3_600, ge=1)
    identical_calls: int = Field(default=3, ge=1)
    unchanged_limit: int = Field(default=5, ge=1)
    tool_error_limit: int = Field(default=5, ge=1)
    refusal_limit: int = Field(default=3, ge=1)
    denial_limit: int = Field(default=3, ge=1)
    max_parallel_tool_calls: int = Field(default=4, ge=1, le=32)
    max_calls_per_reply: int = Field(default=16, ge=1, le=64)
    scope: ScopeGrant = ScopeGrant()

    def grant_for(self, tool: str) -> ToolGrant | None:
        """Return the first grant that covers `tool`, or None."""
        place = first_naming(tuple([grant.name for grant in self.tools]), tool)
        return None if place is None else self.tools[place]

    def ceiling_of(self, grant: ToolGrant) -> Risk:
        """Return the highest risk class at which a tool of the grant is called."""
        return min((grant.risk_ceiling, self.risk_ceiling), key=lambda risk: risk.rank)

    def allows(self, tool: ToolSpec) -> bool:
        """Return whether `tool` is granted and its risk class is within the ceilings."""
        grant = self.grant_for(tool.name)
        return grant is not None and tool.risk.rank <= self.ceiling_of(grant).rank

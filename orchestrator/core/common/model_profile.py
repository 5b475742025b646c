"""A model profile: who answers, how much, at which price (R-TOOL-22)."""

from typing import Literal

from pydantic import Field

from budgets.core.pricing import ModelPrice
from orchestrator.core.common.frozen_model import FrozenModel

Role = Literal["planner", "executor", "critic", "router", "writer", "specialist", "cheaper"]
Provider = Literal["openai", "anthropic", "scripted"]


class ModelProfile(FrozenModel):
    """One model for one or more roles. Limits are tokens, times milliseconds.

    `price` None means unknown: the call is refused unless `worst_case` declares what to charge (R-BUDGET-15).
    `streams`: the provider is asked for its reply as a stream, so that people see its text while it is
    written; nothing else depends on it. `failover` names the profiles
    that take over, in order, where this one cannot be asked (core/llm/failover.py). `own`: the
    tenant named it (core/llm/tenant_models.py), so its address is judged at every call, and its key is
    the tenant's `secret` of this name, if any. `at_once`: how many calls at once it takes; more wait in line
    (None: as many as come).
    """

    name: str
    version: int = 1
    provider: Provider
    model: str
    base_url: str | None = None
    roles: tuple[Role, ...] = ("executor",)
    context_tokens: int = 128_000
    max_output_tokens: int = 2_000
    timeout_ms: int = 60_000
    max_retries: int = Field(default=2, ge=0, le=10)
    overhead_per_message: int = 16
    overhead_per_tool: int = 64
    price: ModelPrice | None = None
    cheaper: str | None = None
    failover: tuple[str, ...] = ()
    own: bool = False
    secret: str = ""
    scenario: str | None = None
    streams: bool = False
    at_once: int | None = Field(default=None, ge=1)

"""The possible and actual cost of effects as vectors: arithmetic over pinned prices (R-BUDGET-1)."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from budgets.core.pricing import actual_cost, worst_cost
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.memory_gate import CATEGORY as MEMORY
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import RefusedEffect

ONE = Decimal(1)
ZERO = Decimal(0)


def model_reserve(
    profile: ModelProfile, request: bytes, messages: int, tools: int, max_output: int
) -> Amounts:
    """Return the worst case of a model call (R-BUDGET-2).

    Every byte of the request counts as a token, plus the profile's overheads.
    """
    tokens_in, tokens_out = prompt_tokens(profile, request, messages, tools), Decimal(max_output)
    return {
        "model_turns": ONE,
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "cost_usd": worst_cost(profile.price, tokens_in, tokens_out),
    }


def prompt_tokens(profile: ModelProfile, request: bytes, messages: int, tools: int) -> Decimal:
    """Return the most tokens that a request can have: one per byte, plus the profile's overheads."""
    return Decimal(len(request) + messages * profile.overhead_per_message + tools * profile.overhead_per_tool)


def model_actual(profile: ModelProfile, usage: Mapping[str, Decimal]) -> Amounts:
    """Return the actual cost of a reply: the usage that the gateway sanitized, at the pinned price."""
    tokens_in, tokens_out = usage.get("input_tokens", ZERO), usage.get("output_tokens", ZERO)
    return {
        "model_turns": ONE,
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "cost_usd": actual_cost(profile.price, usage),
    }


def call_reserve(spec: ToolSpec, *, granted: bool, step: bool) -> Amounts:
    """Return the worst case of a tool call.

    `step` is set for the one call of a batch that also accounts for the batch's update_state commit.
    """
    amounts: Amounts = {"tool_calls": ONE}
    if step:
        amounts["steps"] = ONE
    if spec.external:
        amounts["external_calls"] = ONE
    if spec.price_usd:
        amounts["cost_usd"] = spec.price_usd
    if spec.is_mutating:
        amounts["granted_side_effects" if granted else "side_effects"] = ONE
    return amounts


def compute_run_reserve(spec: ToolSpec, *, granted: bool, step: bool) -> Amounts:
    """Return the worst case that a run reserves for a call.

    A memory write counts as such and not as an ungranted side effect: a profile limits memory writes
    separately, and a proposed memory changes nothing yet.
    """
    amounts = call_reserve(spec, granted=granted, step=step)
    if spec.category == MEMORY and spec.is_mutating:
        amounts["memory_writes"] = ONE
    if is_memory_write(spec):
        amounts.pop("side_effects", None)
    return amounts


def is_memory_write(spec: ToolSpec) -> bool:
    """Return whether a call writes to memory and changes nothing else.

    This is never assumed of a remote tool, whatever its category says.
    """
    return spec.category == MEMORY and spec.is_mutating and spec.remote is None


def find_budget_shortfall(
    state: RunState, wanted: Iterable[Amounts], headroom: Headroom
) -> RefusedEffect | None:
    """Return the first dimension with too little left for the sum of `wanted`, or None (R-BUDGET-16)."""
    total: Amounts = {}
    for amounts in wanted:
        for dimension, amount in amounts.items():
            total[dimension] = total.get(dimension, ZERO) + amount
    refused = {entry.dimension: entry for entry in headroom.refused}
    for dimension, amount in total.items():
        if amount <= 0:
            continue
        left = state.left(dimension)
        if left is not None and amount > left:
            return RefusedEffect(dimension=dimension, limit=state.limits[dimension], wanted=amount, left=left)
        if (told := refused.get(dimension)) is not None and amount > told.left:
            return RefusedEffect(
                dimension=dimension, limit=told.limit, wanted=amount, left=told.left, account=told.account
            )
    cost = total.get("cost_usd", ZERO)
    if headroom.tenant_cost is not None and cost > headroom.tenant_cost:
        return RefusedEffect(
            dimension="cost_usd", limit=headroom.tenant_limit, wanted=cost, left=headroom.tenant_cost,
            account=headroom.tenant_window or "tenant",
        )  # fmt: skip
    return None


def add_amounts(left: Amounts, right: Amounts) -> Amounts:
    """Return the sum of two vectors; a dimension only in `right` is left out if it is zero."""
    result = dict(left)
    for dimension, amount in right.items():
        if amount:
            result[dimension] = result.get(dimension, ZERO) + amount
    return result

"""What effects may cost and did cost, as vectors (R-BUDGET-1). Pure arithmetic over pinned prices."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from budgets.core.pricing import actual_cost, worst_cost
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.memory_gate import CATEGORY as MEMORY
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import Refused

ONE = Decimal(1)
ZERO = Decimal(0)
# Runs admitted under an earlier core count no writes to memory, so that they replay as they were.
MEMORY_SINCE = 4
# Those before this one counted a write to memory as a change of the world, too.
APART_SINCE = 5
# Those before this one believed it of a tool from outside that was declared so.
LOCAL_SINCE = 6


def model_reserve(
    profile: ModelProfile, request: bytes, messages: int, tools: int, max_output: int
) -> Amounts:
    """The worst case of a model call: every byte of the request a token, plus the profile's overheads
    (R-BUDGET-2)."""
    tokens_in, tokens_out = prompt_tokens(profile, request, messages, tools), Decimal(max_output)
    return {
        "model_turns": ONE,
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "cost_usd": worst_cost(profile.price, tokens_in, tokens_out),
    }


def prompt_tokens(profile: ModelProfile, request: bytes, messages: int, tools: int) -> Decimal:
    """As many tokens as a request can have: a byte each, plus the profile's overheads."""
    return Decimal(len(request) + messages * profile.overhead_per_message + tools * profile.overhead_per_tool)


def model_actual(profile: ModelProfile, usage: Mapping[str, Decimal]) -> Amounts:
    """What a reply took: the figures the gateway made sane, at the pinned price."""
    tokens_in, tokens_out = usage.get("input_tokens", ZERO), usage.get("output_tokens", ZERO)
    return {
        "model_turns": ONE,
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "cost_usd": actual_cost(profile.price, usage),
    }


def call_reserve(spec: ToolSpec, *, granted: bool, step: bool) -> Amounts:
    """The worst case of a tool call; `step` for the one call of a batch that stands for its update_state
    commit."""
    amounts: Amounts = {"tool_calls": ONE}
    if step:
        amounts["steps"] = ONE
    if spec.external:
        amounts["external_calls"] = ONE
    if spec.price_usd:
        amounts["cost_usd"] = spec.price_usd
    if spec.mutating:
        amounts["granted_side_effects" if granted else "side_effects"] = ONE
    return amounts


def compute_run_reserve(manifest: Manifest, spec: ToolSpec, *, granted: bool, step: bool) -> Amounts:
    """What a run reserves for a call: its worst case. A write to memory is counted as one, and not as a
    change that nobody granted: a profile gives each of its own, and what is proposed changes nothing yet."""
    amounts = call_reserve(spec, granted=granted, step=step)
    if spec.category == MEMORY and spec.mutating and manifest.core_version >= MEMORY_SINCE:
        amounts["memory_writes"] = ONE
    if is_memory_write(manifest, spec):
        amounts.pop("side_effects", None)
    return amounts


def is_memory_write(manifest: Manifest, spec: ToolSpec) -> bool:
    """Whether a call writes to memory and changes nothing else. Of a tool from outside nobody knows that,
    whatever it is called."""
    if manifest.core_version >= LOCAL_SINCE and spec.remote is not None:
        return False
    return spec.category == MEMORY and spec.mutating and manifest.core_version >= APART_SINCE


def find_budget_shortfall(state: RunState, wanted: Iterable[Amounts], headroom: Headroom) -> Refused | None:
    """The first dimension whose rest does not suffice for all of `wanted` together, or None (R-BUDGET-16)."""
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
            return Refused(dimension=dimension, limit=state.limits[dimension], wanted=amount, left=left)
        if (told := refused.get(dimension)) is not None and amount > told.left:
            return Refused(
                dimension=dimension, limit=told.limit, wanted=amount, left=told.left, account=told.account
            )
    cost = total.get("cost_usd", ZERO)
    if headroom.tenant_cost is not None and cost > headroom.tenant_cost:
        return Refused(
            dimension="cost_usd", limit=headroom.tenant_limit, wanted=cost, left=headroom.tenant_cost,
            account=headroom.tenant_window or "tenant",
        )  # fmt: skip
    return None


def add_amounts(left: Amounts, right: Amounts) -> Amounts:
    """The sum of two vectors; dimensions that stay at zero are left out of the answer when new."""
    result = dict(left)
    for dimension, amount in right.items():
        if amount:
            result[dimension] = result.get(dimension, ZERO) + amount
    return result

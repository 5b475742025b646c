"""Apply a price corrected while a run is under way to what the run asks for later (R-BUDGET-15).

The pins stay unchanged; the state holds the prices that replace theirs, so a replay charges the same.
"""

from collections.abc import Mapping
from decimal import Decimal

from budgets.core.dimension import Dimension
from budgets.core.pricing import ModelPrice, actual_cost
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.common.tool_price import ToolPrice
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.manifest import Manifest, Pins
from orchestrator.core.domain.run_events import PriceCorrected
from orchestrator.core.domain.run_state import PendingEffect, RunState
from orchestrator.core.domain.tool_spec import ToolSpec

COST = Dimension.COST_USD.value


def with_corrected_prices(state: RunState, event: PriceCorrected) -> RunState:
    """Return the state with the prices in force from now on: `models` by profile, `tools` by tool."""
    return state.evolve(
        prices={**state.prices, **event.models}, tool_prices={**state.tool_prices, **event.tools}
    )


def in_force(
    manifest: Manifest, prices: Mapping[str, ModelPrice], tools: Mapping[str, ToolPrice]
) -> Manifest:
    """Return the manifest with the replaced prices of its pinned models and tools."""
    if not prices and not tools:
        return manifest
    pins = manifest.pins
    said = {name: getattr(pins, name) for name in Pins.model_fields}
    said["profiles"] = tuple(_with_profile_price(profile, prices) for profile in pins.profiles)
    said["tools"] = tuple(_with_tool_price(spec, tools) for spec in pins.tools)
    # Not evolve: a copy would keep the cached old tools by name.
    return manifest.evolve(pins=Pins.model_construct(**said))


def _with_profile_price(profile: ModelProfile, prices: Mapping[str, ModelPrice]) -> ModelProfile:
    price = prices.get(profile.name)
    return profile if price is None else profile.evolve(price=price)


def _with_tool_price(spec: ToolSpec, tools: Mapping[str, ToolPrice]) -> ToolSpec:
    price = tools.get(spec.name)
    return spec if price is None else spec.evolve(price_usd=price.usd)


def has_replaced_price(state: RunState, pending: PendingEffect, tool: str) -> bool:
    """Return whether the price of an effect in flight was replaced. `tool` is "" for a model call."""
    return tool in state.tool_prices if pending.kind == "call_tool" else pending.profile in state.prices


def at_price(amounts: Amounts, price: ModelPrice | Decimal | None) -> Amounts:
    """Return a call's reserved amounts at the price in force: US$ per tool call, or a model's by tokens."""
    cost = price if isinstance(price, Decimal) else actual_cost(price, amounts)
    return {**amounts, COST: cost}


def undone_within(state: RunState, amounts: Amounts) -> Amounts:
    """Return what undoing reserves, its cost capped at what is left.

    Its budget was reserved at the wrong price. Any cost beyond that is booked when undoing is over.
    """
    if COST not in amounts or not state.tool_prices:
        return amounts
    left = state.left(COST)
    return amounts if left is None else {**amounts, COST: min(amounts[COST], max(left, Decimal(0)))}

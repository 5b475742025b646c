"""A price that was corrected while the run is under way: what it asks for from then on is charged at the
right one (R-BUDGET-15).

The pins stay as they are; the state holds what replaces a price of theirs, so a replay charges the same.
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
from orchestrator.core.domain.run_state import Pending, RunState
from orchestrator.core.domain.tool_spec import ToolSpec

COST = Dimension.COST_USD.value


def with_corrected_prices(state: RunState, event: PriceCorrected) -> RunState:
    """The state with the prices that hold from now on; `models` by profile, `tools` by tool."""
    return state.evolve(
        prices={**state.prices, **event.models}, tool_prices={**state.tool_prices, **event.tools}
    )


def in_force(
    manifest: Manifest, prices: Mapping[str, ModelPrice], tools: Mapping[str, ToolPrice]
) -> Manifest:
    """The manifest whose pinned models and tools have the prices that replace theirs."""
    if not prices and not tools:
        return manifest
    pins = manifest.pins
    said = {name: getattr(pins, name) for name in Pins.model_fields}
    said["profiles"] = tuple(_with_profile_price(profile, prices) for profile in pins.profiles)
    said["tools"] = tuple(_with_tool_price(spec, tools) for spec in pins.tools)
    # Not evolve: a copy would take the old tools by name along.
    return manifest.evolve(pins=Pins.model_construct(**said))


def _with_profile_price(profile: ModelProfile, prices: Mapping[str, ModelPrice]) -> ModelProfile:
    price = prices.get(profile.name)
    return profile if price is None else profile.evolve(price=price)


def _with_tool_price(spec: ToolSpec, tools: Mapping[str, ToolPrice]) -> ToolSpec:
    price = tools.get(spec.name)
    return spec if price is None else spec.evolve(price_usd=price.usd)


def has_replaced_price(state: RunState, pending: Pending, tool: str) -> bool:
    """Whether the price of what is in flight was replaced by another; `tool` is what is called, "" for a
    model."""
    return tool in state.tool_prices if pending.kind == "call_tool" else pending.profile in state.prices


def at_price(amounts: Amounts, price: ModelPrice | Decimal | None) -> Amounts:
    """What was held for a call, at the price in force: US$ a call of a tool, a model's by its tokens."""
    cost = price if isinstance(price, Decimal) else actual_cost(price, amounts)
    return {**amounts, COST: cost}


def undone_within(state: RunState, amounts: Amounts) -> Amounts:
    """What undoing holds, of money at the most what is left: its room was kept back at the price that was
    wrong. What it costs beyond that is booked when it is over."""
    if COST not in amounts or not state.tool_prices:
        return amounts
    left = state.left(COST)
    return amounts if left is None else {**amounts, COST: min(amounts[COST], max(left, Decimal(0)))}

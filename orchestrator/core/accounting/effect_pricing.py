"""Which version of which price an effect is charged at: what its ledger entries name (R-BUDGET-15)."""

from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_state import PendingEffect, RunState
from orchestrator.core.domain.tool_spec import ToolSpec

LONGEST = 100
WORST = " worst case"


def price_of_effect(pins: Pins, state: RunState, effect: CallModel | CallTool) -> str:
    """The price version of an effect that is about to be asked for; "" where no money is held for it."""
    if "cost_usd" not in effect.reserve:
        return ""
    if isinstance(effect, CallModel):
        return _of_profile(pins, state, effect.profile)
    return _of_tool(pins, state, pins.by_name[effect.tool])


def price_of_pending(pins: Pins, state: RunState, pending: PendingEffect) -> str:
    """Return the price version of an effect in flight, or "" if no money is reserved for it."""
    spec = find_called_tool(pins, state, pending)
    # What was free by mistake when it was asked for costs money all the same.
    if "cost_usd" not in pending.reserve and (spec is None or spec.name not in state.tool_prices):
        return ""
    if pending.kind == "call_model":
        return _of_profile(pins, state, pending.profile)
    return "" if spec is None else _of_tool(pins, state, spec)


def _of_profile(pins: Pins, state: RunState, name: str) -> str:
    """The version of the pinned price, or of the one that replaces it."""
    price = state.prices.get(name)
    return price_of_profile(pins, name) if price is None else price.version[:LONGEST]


def _of_tool(pins: Pins, state: RunState, spec: ToolSpec) -> str:
    price = state.tool_prices.get(spec.name)
    return price_of_tool(pins, spec) if price is None else price.version[:LONGEST]


def price_of_profile(pins: Pins, name: str) -> str:
    """The version of a pinned model's price."""
    found = next((profile for profile in pins.profiles if profile.name == name), None)
    return "" if found is None or found.price is None else found.price.version[:LONGEST]


def price_of_tool(pins: Pins, spec: ToolSpec) -> str:
    """A tool's price is a part of its version; what was charged where none is stated says so."""
    return price_of_version(spec) + (WORST if spec.name in pins.unpriced else "")


def price_of_version(spec: ToolSpec) -> str:
    """How the price that a tool's version states is called."""
    return f"{spec.name}@{spec.version}"


def find_called_tool(pins: Pins, state: RunState, pending: PendingEffect) -> ToolSpec | None:
    """The tool that is called: for a reading back, the reader; None for a model."""
    call = next((call for call in (*state.batch, *state.queue) if call.id == pending.call), None)
    spec = None if call is None else pins.by_name.get(call.tool)
    if spec is None or pending.purpose != "read_back":
        return spec
    reader = None if spec.verifier is None else spec.verifier.read_back
    return None if reader is None else pins.by_name.get(reader.tool)

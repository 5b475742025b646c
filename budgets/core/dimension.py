"""The dimensions of a budget in vector order, each with unit, kind and sentence (R-BUDGET-1)."""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Kind(StrEnum):
    """The enforcement of a dimension: summed over the run, or compared at use and never summed.

    Spec: R-BUDGET-16.
    """

    CUMULATIVE = "cumulative"
    GAUGE = "gauge"


class Dimension(StrEnum):
    """A quantity that can be limited. Refusals and tables follow this order."""

    STEPS = "steps"
    MODEL_TURNS = "model_turns"
    TOOL_CALLS = "tool_calls"
    EXTERNAL_CALLS = "external_calls"
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"
    TOTAL_TOKENS = "total_tokens"
    COST_USD = "cost_usd"
    WALL_CLOCK_SECONDS = "wall_clock_seconds"
    RETRIES = "retries"
    REFLECTIONS = "reflections"
    REPLANS = "replans"
    CONTEXT_TOKENS = "context_tokens"
    MEMORY_WRITES = "memory_writes"
    SIDE_EFFECTS = "side_effects"
    GRANTED_SIDE_EFFECTS = "granted_side_effects"
    DEPTH = "depth"
    TRANSITIONS = "transitions"

    @property
    def about(self) -> "DimensionInfo":
        """Unit, kind and sentence."""
        return ABOUT[self]

    @property
    def gauge(self) -> bool:
        """Return whether the dimension is compared at use instead of summed."""
        return self in GAUGES


@dataclass(frozen=True, slots=True)
class DimensionInfo:
    """Unit, kind and description of a dimension."""

    unit: str
    kind: Kind
    sentence: str


_SUM, _GAUGE = Kind.CUMULATIVE, Kind.GAUGE
ABOUT: Final = MappingProxyType(
    {
        Dimension.STEPS: DimensionInfo("commits", _SUM, "Actions observed and committed to the run's state."),
        Dimension.MODEL_TURNS: DimensionInfo("calls", _SUM, "Calls of a model, failed ones included."),
        Dimension.TOOL_CALLS: DimensionInfo("calls", _SUM, "Calls of a tool, failed ones included."),
        Dimension.EXTERNAL_CALLS: DimensionInfo("calls", _SUM, "Tool calls that leave the house."),
        Dimension.INPUT_TOKENS: DimensionInfo("tokens", _SUM, "Tokens sent to models."),
        Dimension.OUTPUT_TOKENS: DimensionInfo("tokens", _SUM, "Tokens written by models."),
        Dimension.TOTAL_TOKENS: DimensionInfo("tokens", _SUM, "Tokens sent to and written by models."),
        Dimension.COST_USD: DimensionInfo(
            "US$", _SUM, "Inference and priced tool and external calls, exactly."
        ),
        Dimension.WALL_CLOCK_SECONDS: DimensionInfo(
            "s", _SUM, "Working time; waiting for people is not counted."
        ),
        Dimension.RETRIES: DimensionInfo("attempts", _GAUGE, "Consecutive attempts of one effect."),
        Dimension.REFLECTIONS: DimensionInfo("passes", _SUM, "Passes of self-criticism."),
        Dimension.REPLANS: DimensionInfo("revisions", _SUM, "Revisions of the plan."),
        Dimension.CONTEXT_TOKENS: DimensionInfo("tokens", _GAUGE, "Tokens of one compiled prompt."),
        Dimension.MEMORY_WRITES: DimensionInfo("writes", _SUM, "Writes to memory."),
        Dimension.SIDE_EFFECTS: DimensionInfo("actions", _SUM, "Mutating actions without a person's grant."),
        Dimension.GRANTED_SIDE_EFFECTS: DimensionInfo(
            "actions", _SUM, "Mutating actions under a person's grant."
        ),
        Dimension.DEPTH: DimensionInfo("levels", _GAUGE, "Nesting of lanes."),
        Dimension.TRANSITIONS: DimensionInfo("transitions", _SUM, "Transitions of the workflow graph."),
    }
)
GAUGES: Final = frozenset(dimension for dimension in Dimension if ABOUT[dimension].kind is Kind.GAUGE)

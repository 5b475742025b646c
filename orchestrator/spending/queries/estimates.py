"""The remaining usage of a run, as pages and the API show it (R-BUDGET-4).

Call it in the tenant's context.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from budgets.core.dimension import ABOUT, Dimension
from budgets.core.statistics.forecast import UNKNOWN, Interval
from budgets.queries import get_usage_lines
from orchestrator.console.queries.run_summary import LimitUsage
from orchestrator.console.queries.tripped_breakers import cost_set_by
from orchestrator.core.accounting.remaining_estimate import estimate_remaining_usage
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.llm.cost_downgrade import is_cost_threshold_passed
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.run_list import Meter
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of
from traces.core.canonical import format_decimal

UNITS: Final[Mapping[Dimension, str]] = {Dimension.COST_USD: "usd", Dimension.WALL_CLOCK_SECONDS: "s"}
LABELS: Final[Mapping[str, Dimension]] = {
    "Cost": Dimension.COST_USD, "Model calls": Dimension.MODEL_TURNS, "Tool calls": Dimension.TOOL_CALLS,
    "Working time": Dimension.WALL_CLOCK_SECONDS,
}  # fmt: skip
SPENT: Final = "80 % of the cost is spent. The limit of ${limit} was set by {who}."


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEstimate:
    """A limit with the estimated remaining usage of the run; `note` is an additional sentence."""

    label: str
    unit: str
    meter: Meter
    rest: Interval
    gauge: bool = False
    note: str = ""

    @property
    def left(self) -> Decimal | None:
        """The amount that is neither used nor reserved; None without a limit."""
        meter = self.meter
        return None if meter.limit is None else max(Decimal(0), meter.limit - meter.used - meter.reserved)

    @property
    def is_known(self) -> bool:
        """True if there is an estimate of the remaining usage."""
        return self.rest != UNKNOWN

    @property
    def short(self) -> bool:
        """True if less is left than the lower bound of the remaining usage.

        The reserved amount counts as left, because calls in flight are part of the remaining usage.
        """
        left = self.left
        return left is not None and left + self.meter.reserved < self.rest.lower


def rest_of(run: Run, state: RunState) -> dict[str, Interval]:
    """Return the bounds of the remaining usage by dimension; empty once the run has ended."""
    if state.outcome is not None:
        return {}
    body, pinned = ManifestRow.objects.values_list("body", "pins_digest").get(id=run.id)
    manifest = manifest_of(bytes(body), pins_of(run.tenant_id, pinned))
    return estimate_remaining_usage(graph_of(run.tenant_id, run.workflow_version_id), manifest, state)


def with_remaining_estimates(
    dials: tuple[LimitUsage, ...], run: Run, state: RunState
) -> tuple[LimitEstimate, ...]:
    """Return the dials of a run's page with the remaining usage."""
    rest = rest_of(run, state)
    return tuple(
        LimitEstimate(
            label=dial.label,
            unit=dial.unit,
            meter=dial.meter,
            rest=rest.get(_get_dimension_name(dial), UNKNOWN),
            note=_format_downgrade_note(run, dial)
            if dial.unit == "usd" and is_cost_threshold_passed(state)
            else "",
        )
        for dial in dials
    )


def _format_downgrade_note(run: Run, dial: LimitUsage) -> str:
    """Return the note that the run uses the cheaper model now, and who set the limit (R-BUDGET-5)."""
    return SPENT.format(limit=format_decimal(dial.meter.limit or Decimal(0)), who=cost_set_by(run))


def limits_of(run: Run, state: RunState) -> tuple[LimitEstimate, ...]:
    """Return every limit of a run: used, reserved, left and remaining usage (R-BUDGET-14)."""
    rest = rest_of(run, state)
    return tuple(
        LimitEstimate(
            label=dimension.value.replace("_usd", "").replace("_", " ").capitalize(),
            unit=UNITS.get(dimension, ABOUT[dimension].unit),
            meter=Meter(
                used=_count_used(dimension, line.used, run), reserved=line.reserved, limit=line.limit
            ),
            rest=rest.get(dimension.value, UNKNOWN),
            gauge=dimension.gauge,
        )
        for dimension, line in get_usage_lines(run.id).items()
        if line.limit is not None or line.used or line.reserved
    )


def _count_used(dimension: Dimension, used: Decimal, run: Run) -> Decimal:
    """Return the used amount; transitions are counted by records, because no effect reserves them."""
    return Decimal(run.record_number) if dimension is Dimension.TRANSITIONS else used


def _get_dimension_name(dial: LimitUsage) -> str:
    found = LABELS.get(dial.label)
    return found.value if found is not None else ""

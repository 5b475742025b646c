"""Spending of a tenant by workflow, model and tool, and the spread of its runs' figures.

The tables are small aggregates that each run's end adds to: a page costs the same with a hundred runs and
with a hundred thousand. All functions run in the tenant's context.

Spec: R-BUDGET-14.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from django.db.models import F, Sum

from budgets.core.amounts import ZERO
from budgets.core.statistics.distribution import LEAST, Spread, spread_of
from budgets.models import DaySpend, RunFigures

RUNS: Final = 500
METRICS: Final = {"steps": "steps", "depth": "levels", "tokens": "tokens", "cost": "usd", "seconds": "s"}
_COLUMNS: Final = tuple(name for metric in METRICS for name in (metric, f"{metric}_limit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The spending on one workflow, model or tool, in US$, and its number of calls."""

    name: str
    usd: Decimal
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Spending of ended runs over a range of days, largest first. `total` is the sum."""

    workflows: Sequence[Share]
    models: Sequence[Share]
    tools: Sequence[Share]

    @property
    def total(self) -> Decimal:
        """The spending of ended runs; the rest of a window belongs to runs in progress."""
        return sum((share.usd for share in self.workflows), ZERO)


def get_spending(first: date, last: date) -> Spending:
    """Sum the tenant's spending on the days from `first` to `last`, by workflow, model and tool."""
    rows = DaySpend.objects.filter(day__gte=first, day__lte=last)
    grouped = rows.values("workflow", "kind", "name").annotate(dollars=Sum("usd"), number=Sum("calls"))
    found = list(grouped.values_list("workflow", "kind", "name", "dollars", "number"))
    return Spending(
        workflows=_sum_shares((workflow, usd, calls) for workflow, _, _, usd, calls in found),
        models=_sum_shares((name, usd, calls) for _, kind, name, usd, calls in found if kind == "model"),
        tools=_sum_shares((name, usd, calls) for _, kind, name, usd, calls in found if kind == "tool"),
    )


def of_month(at: datetime, zone: ZoneInfo) -> tuple[date, date]:
    """Return the first day of the tenant's month that contains `at`, and the day of `at`."""
    today = at.astimezone(zone).date()
    return today.replace(day=1), today


def daily_by_model(at: datetime, zone: ZoneInfo, days: int) -> Mapping[date, Mapping[str, Decimal]]:
    """Sum US$ by day and model or tool, for those of the last `days` days that had spending."""
    since = at.astimezone(zone).date() - timedelta(days=days - 1)
    rows = DaySpend.objects.filter(day__gte=since, usd__gt=0)
    found: dict[date, dict[str, Decimal]] = {}
    grouped = rows.values("day", "name").annotate(dollars=Sum("usd")).order_by("day", "name")
    for day, name, usd in grouped.values_list("day", "name", "dollars"):
        found.setdefault(day, {})[name] = usd
    return found


def workflows_run() -> Sequence[str]:
    """List the workflows whose runs have ended, by name.

    Uses one index lookup per name, since a workflow may have many runs.
    """
    found: list[str] = []
    rows = RunFigures.objects.order_by("workflow").values_list("workflow", flat=True)
    while (name := rows.filter(workflow__gt=found[-1] if found else "").first()) is not None:
        found.append(name)
    return found


def get_usage_spreads(workflow: str) -> Mapping[str, Spread]:
    """Compute, by metric, the spread of a workflow's newest runs against as many before them.

    Empty if no run has ended.
    """
    newest_first = RunFigures.objects.filter(workflow=workflow).order_by(F("ended_at").desc())
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in newest_first.values_list(*_COLUMNS)[: 2 * RUNS]]
    # If there are too few runs to compare, all of them count as the newest.
    half = len(rows) if len(rows) < 2 * LEAST else min(RUNS, -(-len(rows) // 2))
    found = {
        metric: spread_of(
            [_extract_figure(row, metric) for row in rows[:half]],
            [_extract_figure(row, metric) for row in rows[half:]],
        )
        for metric in METRICS
    }
    return {metric: spread for metric, spread in found.items() if spread is not None}


def _extract_figure(row: Mapping[str, Decimal | int | None], metric: str) -> tuple[Decimal, Decimal | None]:
    amount, cap = row[metric], row[f"{metric}_limit"]
    return Decimal(amount or 0), None if cap is None else Decimal(cap)


def _sum_shares(rows: Iterable[tuple[str, Decimal, int]]) -> Sequence[Share]:
    sums: dict[str, tuple[Decimal, int]] = {}
    for name, usd, calls in rows:
        before = sums.get(name, (ZERO, 0))
        sums[name] = (before[0] + usd, before[1] + calls)
    found = [Share(name=name, usd=usd, calls=calls) for name, (usd, calls) in sums.items()]
    return sorted(found, key=lambda share: (-share.usd, -share.calls, share.name))
